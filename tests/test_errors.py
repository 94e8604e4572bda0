from __future__ import annotations

from dialoscope.errors import MissingExtraError, unknown_name


def test_an_unknown_name_gets_the_closest_known_one() -> None:
    error = unknown_name("corpus", "daylydialog", ["dailydialog", "multiwoz"])
    assert str(error) == "Unknown corpus 'daylydialog'. Did you mean 'dailydialog'?"


def test_a_name_like_no_other_gets_the_list() -> None:
    assert str(unknown_name("metric", "xyz", ["rouge", "bleu"])) == "Unknown metric 'xyz'. Known: bleu, rouge."


def test_a_missing_extra_prints_its_install_line() -> None:
    assert str(MissingExtraError("METEOR", "metrics")) == "METEOR needs an extra: pip install 'dialoscope[metrics]'"
    assert str(MissingExtraError("MLflow", packages="mlflow-skinny")) == (
        "MLflow needs a package: pip install mlflow-skinny"
    )
