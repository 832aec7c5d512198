"""Every kind of model and table with the default call: it explains without a warning, with the right names."""

import re
import warnings

import pytest

import anchorline as al
from anchorline.render.statements import class_text
from tests.first_try.kinds import KINDS, Kind
from tests.first_try.page import name_of


@pytest.mark.parametrize("one", KINDS, ids=name_of)
def test_first_try(one: Kind) -> None:
    for library in one.needs:
        pytest.importorskip(library, reason=f"{library} is not installed (extra first-try)", exc_type=ImportError)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the libraries that fit
        given = one.make()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if one.refused:
            with pytest.raises(al.AnchorlineError, match=one.refused) as raised:
                al.Explainer(given.model, given.table, **given.keywords).explain(given.row)
            assert len(str(raised.value).splitlines()) == 1
            return
        e = al.Explainer(given.model, given.table, **given.keywords).explain(given.row)
        text = str(e)
    shown = [f"{type(each.message).__name__}: {each.message}" for each in caught]
    if one.notes:
        assert len(shown) == 1, shown
        assert re.search(one.notes, shown[0]), shown
    else:
        assert not shown, shown
    assert e.facts or e.verdict.value == "robust", text
    if given.decisions is not None:
        assert class_text(e.output.decision) in given.decisions, text
        assert not re.search(r'"(0|1|True|False)" stays', text), text
    elif not e.output.decision:
        assert e.output.kind == "number"
    if given.columns is not None:
        assert {fact.attribute for fact in e.facts} <= {*given.columns}, text
