"""Any dialogue corpus in, one form out: dialogues as Arrow columns."""
