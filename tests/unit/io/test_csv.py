"""CSV files as spreadsheets write them, and CSV rows for a table that was read before."""

import gzip
import time

import pytest

from anchorline import errors
from anchorline.io import read_rows, read_table
from helpers.tables import columns


def test_a_csv_with_mark_semicolons_quotes_and_commas(file):
    text = '\ufeff"age";"town, or ""place""";"rate"\r\n31;"Lens;62";1,5\r\n;"a\nb";2,25\r\n40;NA;\r\n'
    assert columns(file("a.csv", text)) == {
        "age": [31.0, None, 40.0],
        'town, or "place"': ["Lens;62", "a\nb", "NA"],
        "rate": [1.5, 2.25, None],
    }


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_separators_are_found(file, separator):
    lines = [["name", "x", "y"], ["a b", "1", "2.5"], ["c", "2", "3"]]
    path = file("a.csv", "\n".join(separator.join(line) for line in lines) + "\n")
    assert columns(path) == {"name": ["a b", "c"], "x": [1, 2], "y": [2.5, 3.0]}


def test_types_of_columns(file):
    text = "i,f,t,b,empty,huge,odd,n\n1,1,x,True,,99999999999999999999,1_000,nan\n-2,.5e3,,False,,1,2,1\n"
    assert columns(file("a.csv", text)) == {
        "i": [1, -2],
        "f": [1.0, 500.0],
        "t": ["x", None],
        "b": [True, False],
        "empty": [None, None],
        "huge": [1e20, 1.0],
        "odd": ["1_000", "2"],
        "n": ["nan", "1"],
    }
    frame = read_table(file("a.csv", text), backend="pandas")
    assert [str(frame[name].dtype) for name in ("i", "f", "b", "empty")] == ["int64", "float64", "bool", "float64"]


@pytest.mark.parametrize("text", ["\u0661\u0662", "1e", "1.2.3", "+-1", "--", ".", "1 2", "0x10", "Infinity"])
def test_what_only_looks_like_a_number_is_text(file, text):
    assert columns(file("a.csv", f"a,b\n{text},1\n1,2\n"))["a"] == [text, "1"]


def test_long_texts_and_many_digits_are_read_in_no_time(file):
    digits = "1" * 10**6
    start = time.process_time()
    assert columns(file("a.csv", f"a,b\n{digits}x,1\n{digits},2\n"))["b"] == [1, 2]
    assert time.process_time() - start < 5


@pytest.mark.parametrize("number", ["1e400", "-1e400", "7" * 400, "7" * 5000])
def test_a_number_that_no_float_holds_is_text_and_not_infinity(file, number):
    text = f"a,b\n{number},1\n2.5,2\n"
    assert columns(file("a.csv", text)) == {"a": [number, "2.5"], "b": [1, 2]}
    assert columns(file("a.csv", f"a,b\n{number},1\n,2\n"))["a"] == [number, None]
    assert read_rows(file("a.csv", text), numbers={"a"})[0]["a"] == number
    with_comma = number.replace("1e", "1,5e")
    assert columns(file("a.csv", f"a;b\n{with_comma};1\n2,5;2\n"))["a"] == [with_comma, "2,5"]


def test_zeros_before_a_number_do_not_make_it_long(file):
    assert columns(file("a.csv", f"a,b\n{'0' * 5000}1,1\n2,2\n"))["a"] == [1, 2]


def test_missing_booleans_stay_texts(file):
    assert columns(file("a.csv", "b,c\ntrue,1\n,2\n"))["b"] == ["true", None]


@pytest.mark.parametrize(
    ("text", "decimal", "expected"),
    [
        ("a;b\n1,5;x\n2,25;y\n", None, [1.5, 2.25]),
        ("a;b\n1,500;x\n2,250;y\n", None, ["1,500", "2,250"]),  # ambiguous: thousands or decimals
        ("a;b\n1,500;x\n2,250;y\n", ",", [1.5, 2.25]),
        ("a;b\n1,5;1.5\n2,25;2.5\n", None, ["1,5", "2,25"]),  # the file has decimal points
        ("a;b\n1,5;x\n2,25;y\n", ".", ["1,5", "2,25"]),
        ("a;b\n1,5 kg;x\n2;y\n", None, ["1,5 kg", "2"]),
    ],
)
def test_decimal_commas_where_nothing_else_makes_sense(file, text, decimal, expected):
    assert columns(file("a.csv", text), decimal=decimal)["a"] == expected


def test_advice_on_commas_can_be_followed_everywhere(file, caplog):
    """The warning has advice for the command line, which has no option for the decimal sign."""
    read_table(file("a.csv", "a;b\n1,500;x\n"))
    assert "Write 1.234 or 1234 for 1,234, or in Python call read_table(..., decimal=',')." in caplog.text


def test_one_column_and_blank_lines(file):
    assert columns(file("a.csv", "x\n\n1\n2\n\n")) == {"x": [1, 2]}


def test_packed_and_tab_separated(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n"))
    assert columns(tmp_path / "a.csv.gz") == {"a": [1], "b": [2]}
    (tmp_path / "a.tsv").write_text("a\tb,c\n1\tx\n")
    assert columns(tmp_path / "a.tsv") == {"a": [1], "b,c": ["x"]}


def test_columns_are_picked_in_order(file):
    path = file("a.csv", "a,b,c\n1,2,3\n")
    assert list(columns(path, columns=["c", "a"])) == ["c", "a"]
    with pytest.raises(errors.TableFileError, match=r"has no column 'z'. It has 'a', 'b', 'c'"):
        read_table(path, columns=["z"])
    with pytest.raises(errors.ParameterError, match="names 'a' twice"):
        read_table(path, columns=["a", "a"])


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"", "is empty"),
        (b" \n\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"a,b\n", "a header but no rows"),
        (b"5.1,3.5\n4.9,3.0\n", "has no header"),
        (b"1,1\n2,2\n", "has no header"),
        (b"a,b,a\n1,2,3\n", "two columns called 'a'"),
        (b",a\n0,1\n", "no name for column 1"),
        (b"a,b\n1,2\n3\n", r"line 3 has 1 fields, but the header has 2 \(separator ','\)"),
        (b"a,b\n1,2,3\n", "line 2 has 3 fields"),
        (b'a,b\n1,"2\n', "cannot be read as CSV"),
        (b"a,b\n1,\xe9t\xe9\n", r"not UTF-8 \(line 2, byte 6\).*iconv -f latin1"),
        ("a,b\n1,2\n".encode("utf-16"), "iconv -f utf-16 -t utf-8"),
        (b"a,b\n1,\x00\n", "null characters"),
        (b"PAR1\x00\x01", "null characters|not UTF-8"),
    ],
)
def test_what_is_no_csv(file, content, match):
    with pytest.raises(errors.TableFileError, match=match):
        read_table(file("a.csv", content))


def test_numbers_as_names_are_names(file):
    assert list(columns(file("a.csv", "0,1,2\n5,6,7\n"))) == ["0", "1", "2"]


def test_a_separator_of_two_characters(file):
    with pytest.raises(errors.TableFileError, match="cannot be read as CSV"):
        read_table(file("a.csv", "a,b\n1,2\n"), separator=";;")


def test_rows_are_read_cell_by_cell(file):
    text = "n,code,flag\n1,007,true\n,22,\n1.50,,False\nx, a,TRUE\n" + "9" * 16 + ",1,0\n"
    rows = read_rows(file("a.csv", text), numbers={"n", "flag", "absent"})
    assert rows == [
        {"n": 1, "code": "007", "flag": True},
        {"n": None, "code": "22", "flag": None},
        {"n": 1.5, "code": None, "flag": False},
        {"n": "x", "code": " a", "flag": True},
        {"n": 10**16 - 1, "code": "1", "flag": 0},
    ]
    header, *lines = text.splitlines(keepends=True)
    assert rows == [read_rows(file("one.csv", header + line), numbers={"n", "flag"})[0] for line in lines]


def test_decimal_commas_of_texts_say_nothing_of_numbers(file):
    path = file("a.csv", "code;x\n1,5;1,500\n2,5;2,250\n")
    assert read_rows(path, numbers={"x"}) == [{"code": "1,5", "x": "1,500"}, {"code": "2,5", "x": "2,250"}]
    path = file("b.csv", "code;x\n1,5;1,5\n2,5;2\n")
    assert read_rows(path, numbers={"x"}) == [{"code": "1,5", "x": 1.5}, {"code": "2,5", "x": 2}]


def test_decimal_commas_are_the_whole_files(file):
    """Decimal commas are the only thing that depends on other cells, as the docstring of `read_rows` says."""
    assert read_rows(file("one.csv", "x;y\n1,234;0\n"), numbers={"x"})[0]["x"] == "1,234"
    assert read_rows(file("two.csv", "x;y\n1,234;0\n2,5;0\n"), numbers={"x"})[0]["x"] == 1.234
    assert "``1,234`` is 1.234 if another number" in read_rows.__doc__
