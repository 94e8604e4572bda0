"""Turnwise: does the model read its context, and is the benchmark honest?"""
