"""The same join on Apache Spark: the same pairs, matches and passes, on as many machines as there are.

`engine` answers what `overlap.engine.Engine` asks, `frames` says what is sent where, `shards` and `buckets` what one
task does with its share, `parquet` how files become units, `session` how Spark is started.
"""
