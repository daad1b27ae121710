"""slalom explain --plot: what is said of a picture."""

import slalom
from slalom.cli.explain import picture_typed


def test_signs_that_no_font_has_are_said_once(tmp_path, capfd):
    explanation = slalom.explain(lambda texts: [[0.4, 0.6]] * len(texts), "好 电 影 很 棒")
    picture_typed(str(tmp_path / "x.png"))(explanation, ())
    assert (tmp_path / "x.png").exists()
    (said,) = capfd.readouterr().err.splitlines()
    assert "matplotlib has no font for 5 characters of the text" in said
