"""`dialoscope engage`: how much of the conversation remains, and whether people agree that it engages."""

from __future__ import annotations

import typer

from dialoscope.cli import engage_live, engage_measure, engage_score, engage_train

app = typer.Typer(name="engage", help="Is the user engaged, turn by turn?", no_args_is_help=True)
app.command(epilog=engage_train.EPILOG)(engage_train.train)
app.command(epilog=engage_score.EPILOG)(engage_score.score)
app.command(epilog=engage_measure.EVALUATE_EPILOG)(engage_measure.evaluate)
app.command(epilog=engage_measure.DEPTH_EPILOG)(engage_measure.depth)
app.command(epilog=engage_live.RANK_EPILOG)(engage_live.rank)
app.command(epilog=engage_live.WATCH_EPILOG)(engage_live.watch)
