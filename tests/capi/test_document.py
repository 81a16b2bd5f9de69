"""docs/aclnn.md says what the libraries answer."""

from __future__ import annotations

import sys

from library import ROOT

sys.path.insert(0, str(ROOT / "tools"))


def test_page_is_current() -> None:
    from make_aclnn_doc import document

    assert (ROOT / "docs/aclnn.md").read_text() == document(), "run `make docs`"
