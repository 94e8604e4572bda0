"""The same join on Apache Spark: the same pairs, matches and passes, on as many machines as there are.

`engine` has the room's verbs (measure, pairs, clean), `frames` says what is sent where, `shards` and `buckets` what one
task does with its share, `parquet` how files become units, `session` how Spark is started.
"""
