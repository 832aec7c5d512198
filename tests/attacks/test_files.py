"""Hostile files of cases: each gets one named line, and nothing that was there is lost."""

import concurrent.futures
import io
import pathlib
import socket
import struct
import threading
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import anchorline as al
from anchorline.studio.access import StudioLimits
from anchorline.studio.opened import MAX_UPLOAD, MAX_UPLOAD_ROWS
from helpers.studio import HOSTILE, becomes_true, begun, client_of, hostile_frame, live

FRAME = pd.DataFrame(
    {
        "income": np.arange(60) * 1000,
        "owner": ["yes", "no"] * 30,
        "applied": pd.date_range("2024-01-01", periods=60),
        "member": [True, False, False] * 20,
    }
)
GOOD = FRAME.head(3).to_csv(index=False).encode()


def approve(frame):
    score = (frame["income"].to_numpy() > 30_000) * 0.8 + 0.1
    return np.column_stack([1 - score, score])


@pytest.fixture(scope="module")
def server():
    explainer = al.Explainer(approve, al.Table(FRAME), classes=["no", "yes"])
    with live(explainer, limits=StudioLimits(max_upload=MAX_UPLOAD)) as running:
        yield running


@pytest.fixture(scope="module")
def client(server):
    with client_of(server, timeout=60) as opened:
        yield opened


def send(client, raw, name="cases.csv", **headers):
    headers = {"Content-Type": "application/octet-stream", **headers}
    return client.post("/v1/file", params={"name": name}, content=raw, headers=headers)


def parquet(frame, **options):
    sink = io.BytesIO()
    pq.write_table(frame if isinstance(frame, pa.Table) else pa.Table.from_pandas(frame), sink, **options)
    return sink.getvalue()


def repeated(n_characters, n_rows):
    """Return a file that holds one text once, and reads as a column that has it in every row."""
    once = pa.DictionaryArray.from_arrays(np.zeros(n_rows, dtype=np.int32), ["x" * n_characters])
    return parquet(pa.table({"owner": once}), store_schema=False)


def lying_about_rows():
    """Return a file of 50,000 rows that claims to have 3, which the number in its footer says."""
    raw = bytearray(parquet(pd.concat([FRAME] * 1000).head(50_000)))
    size = struct.unpack("<I", raw[-8:-4])[0]
    footer = bytes(raw[-8 - size : -8])
    true, false = (b"\x16" + varint(2 * n) for n in (50_000, 3))  # a thrift field of 64 bits, zigzag
    assert true in footer
    changed = footer.replace(true, false)
    return bytes(raw[: -8 - size]) + changed + struct.pack("<I", len(changed)) + b"PAR1"


def varint(number):
    out = bytearray()
    while number > 127:
        out.append(number & 127 | 128)
        number >>= 7
    return bytes([*out, number])


def csv_of(**cells):
    values = {"income": "1000", "owner": "yes", "applied": "2024-01-01", "member": "True"} | cells
    return (",".join(values) + "\n" + ",".join(values.values()) + "\n").encode()


ONE = FRAME.head(1)
ATTACKS = {
    "a column is missing": (b"income,owner\n1,yes\n", "cases.csv", "'cases.csv' lacks the columns"),
    "all columns are others": (b"a,b\n1,2\n", "cases.csv", "lacks the columns"),
    "a column twice": (csv_of().replace(b"owner", b"income"), "cases.csv", "two columns called 'income'"),
    "a column twice in Parquet": (
        parquet(pa.table([pa.array([1]), pa.array([2])], names=["income", "income"])),
        "cases.parquet",
        "two columns called 'income'",
    ),
    "a formula for a number": (csv_of(income="=1+1"), "cases.csv", "'=1\\+1' is not a number"),
    "a text for a number": (csv_of(income="lots"), "cases.csv", "'lots' is not a number"),
    "a text in row 4,003": (
        GOOD + b"1,yes,2024-01-01,True\n" * 3999 + b"many,no,2024-01-01,True\n" + b"few,no,2024-01-01,True\n",
        "cases.csv",
        "Row 4003: Column 'income': 'many' is not a number; this column holds numbers.$",
    ),
    "a huge number": (csv_of(income="1e400"), "cases.csv", "'1e400' is not a number"),
    "a text for a date": (
        csv_of(applied="soon"),
        "cases.csv",
        "'cases.csv' cannot be used. Row 1: Column 'applied'",
    ),
    "a number for a boolean": (
        csv_of(member="7"),
        "cases.csv",
        "'cases.csv' cannot be used. Row 1: Column 'member'",
    ),
    "a missing number": (csv_of(income=""), "cases.csv", "Column 'income' is missing"),
    "dates for numbers": (
        parquet(ONE.assign(income=pd.Timestamp("2024-01-01"))),
        "cases.parquet",
        "Column 'income'",
    ),
    "lists for numbers": (parquet(ONE.assign(income=[[1, 2]])), "cases.parquet", "Column 'income'"),
    "bytes for texts": (parquet(ONE.assign(owner=[b"\xff\xfe"])), "cases.parquet", "cases.parquet"),
    "deep lists": (
        parquet(pa.table({"income": pa.array([None], _deep := pa.list_(pa.list_(pa.list_(pa.int8()))))})),
        "cases.parquet",
        "lacks the columns",
    ),
    "too many rows": (GOOD + b"1,yes,2024-01-01,True\n" * MAX_UPLOAD_ROWS, "cases.csv", "5,003 rows; the maximum"),
    "too many rows in Parquet": (parquet(pd.concat([FRAME] * 100)), "cases.parquet", "6,000 rows; the maximum"),
    "a bomb": (repeated(1_000_000, 5000), "cases.parquet", "damaged"),
    "much content": (repeated(90_000, 1000), "cases.parquet", "more than 64 MB"),
    "junk": (np.random.default_rng(0).bytes(100_000), "cases.csv", "is not UTF-8"),
    "junk called Parquet": (b"PAR1" + np.random.default_rng(0).bytes(9999) + b"PAR1", "c.parquet", "not a valid"),
    "null characters": (b"income,owner\0\n", "cases.csv", "null characters"),
    "a quote that never ends": (b'income,owner\n"' + b"x" * 1_000_000, "cases.csv", "cannot be read as CSV"),
    "400,000 columns": (b",".join([b"c%d" % i for i in range(400_000)]) + b"\n", "cases.csv", "no rows"),
    "an archive": (b"PK\x03\x04" + bytes(99), "cases.zip", "neither CSV nor Parquet"),
    "a pickle": (b"\x80\x04\x95cposix\nsystem\n", "cases.pkl", "neither CSV nor Parquet"),
    "nothing": (b"", "cases.csv", "is empty"),
    "blanks": (b" \n\n ", "cases.csv", "is empty"),
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_a_hostile_file_gets_one_named_line(server, client, attack):
    raw, name, message = ATTACKS[attack]
    assert len(raw) < MAX_UPLOAD
    own = {"X-Anchorline-File": send(client, GOOD).json()["id"]}
    refused = send(client, raw, name, **own)
    assert refused.status_code == 422, refused.text
    detail = refused.json()["detail"]
    assert pd.Series([detail]).str.contains(message).all(), detail
    assert name in detail
    assert "\n" not in detail
    assert len(detail) <= 300
    # The file that was open before still is, and so are the cases of the server.
    assert client.get("/v1/rows", headers=own).json()["total"] == 3
    assert client.get("/v1/rows").json()["total"] == len(FRAME)
    assert client.get("/ready").status_code == 200
    client.delete("/v1/file", headers=own)


def test_a_lie_about_the_number_of_rows_gains_nothing(client):
    answer = send(client, lying_about_rows(), "cases.parquet")
    assert answer.status_code == 422 or answer.json()["rows"] == 3


def test_a_file_that_is_too_large_is_not_even_read(server, client):
    refused = send(client, bytes(MAX_UPLOAD + 1))
    assert (refused.status_code, refused.json()["type"]) == (413, "urn:anchorline:large")

    def chunks():
        for _ in range(MAX_UPLOAD // 1_000_000 + 1):
            yield bytes(1_000_000)

    assert send(client, chunks()).status_code == 413  # whose length is not known


def test_markup_in_names_and_cells_stays_text(client):
    """The name of the file, too; paths are cut off."""
    for name, shown in {
        "../../etc/passwd.csv": "passwd.csv",
        "C:\\x\\y.csv": "y.csv",
        f"{HOSTILE}.csv": ".csv",
    }.items():
        answer = send(client, GOOD, name).json()
        assert answer["name"].endswith(shown)
        assert not {"/", "\\\\x", "\u202e", "\x1b"} & {*answer["name"]}
        client.delete("/v1/file", headers={"X-Anchorline-File": answer["id"]})


def test_formulas_stay_texts_in_downloads():
    frame = hostile_frame().assign(cell="plain")
    table = al.Table(hostile_frame())
    scores = lambda rows: np.asarray(rows.iloc[:, 0], dtype=float)  # noqa: E731
    explainer = al.Explainer(scores, table, output="score", output_range=(-4, 4))
    options = {"limits": StudioLimits(max_upload=MAX_UPLOAD)}
    with live(explainer, **options) as running, client_of(running, timeout=60) as client:
        raw = frame.head(2).assign(cell=["=cmd|' /C calc'!A0", "@SUM(1)"]).to_csv(index=False).encode()
        own = {"X-Anchorline-File": send(client, raw).json()["id"]}
        rows = client.get("/v1/rows", headers=own).json()["rows"]
        assert [row["values"][1] for row in rows] == ["=cmd|' /C calc'!A0", "@SUM(1)"]
        client.headers.update(own)
        job = begun(client, "/v1/overview")
        assert becomes_true(lambda: client.get(job).json()["state"] == "done", 20)
        text = client.get(f"{job}/result?format=csv").text
        assert not [line for line in text.splitlines() for cell in line.split(",") if cell[:1] in "=@+" and cell]


def test_an_id_cannot_be_guessed_or_be_anything_but_an_id(client):
    own = send(client, GOOD).json()["id"]
    assert len(own) >= 32
    for guess in (own[:-1], own.upper(), "", "0", "*", own + " x", "../" + own):
        assert client.get("/v1/rows", headers={"X-Anchorline-File": guess}).status_code == 404, guess
    client.delete("/v1/file", headers={"X-Anchorline-File": own})


def test_many_files_at_once_delay_nobody_else(server, client):
    """A user reads one file at a time; meanwhile others are answered, and afterwards no process is left."""
    slow = b",".join([b"c%d" % i for i in range(300_000)]) + b"\n"
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        sent = [pool.submit(send, client, slow) for _ in range(12)]
        start = time.monotonic()
        assert client.get("/health").status_code == 200
        assert client.get("/v1/rows?limit=1").status_code == 200
        waited = time.monotonic() - start
        statuses = {each.result().status_code for each in sent}
    assert statuses <= {422, 429}
    assert waited < 10
    assert becomes_true(lambda: server.studio.jobs.n_running == 0, seconds=20)
    assert not server.studio.opening
    assert becomes_true(lambda: not readers())


def readers():
    """Return the processes of this one that read files."""
    children = pathlib.Path(f"/proc/self/task/{threading.main_thread().native_id}/children")
    tasks = pathlib.Path("/proc/self/task").glob("*/children")
    pids = " ".join(each.read_text() for each in (children, *tasks) if each.exists()).split()
    commands = [pathlib.Path(f"/proc/{pid}/cmdline") for pid in pids]
    return [each for each in commands if each.exists() and b"anchorline.io.isolated" in each.read_bytes()]


def test_a_client_that_leaves_takes_its_process_with_it(server, client):
    raw = repeated(1_000_000, 1900)  # just within the memory
    head = f"POST /v1/file?name=a.parquet HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    head += f"Content-Type: application/octet-stream\r\nContent-Length: {len(raw)}\r\n\r\n"
    with socket.create_connection(("127.0.0.1", int(server.base.rpartition(":")[2]))) as caller:
        caller.sendall(head.encode() + raw)
        assert becomes_true(readers)
    assert becomes_true(lambda: not readers(), seconds=10)
    assert becomes_true(lambda: server.studio.jobs.n_running == 0)
    assert send(client, GOOD).status_code == 200


def test_files_that_arrive_slowly_leave_room(server, client):
    """More uploads than are read at the same time are refused, and end with their connections."""
    head = f"POST /v1/file?name=a.csv HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {server.token}\r\n"
    head += "Content-Type: application/octet-stream\r\nContent-Length: 1000\r\n\r\nx"
    address = ("127.0.0.1", int(server.base.rpartition(":")[2]))
    callers = [socket.create_connection(address) for _ in range(4)]
    for caller in callers:
        caller.sendall(head.encode())
    assert becomes_true(lambda: send(client, GOOD).status_code == 429)
    assert client.get("/v1/rows?limit=1").status_code == 200
    for caller in callers:
        caller.close()
    assert becomes_true(lambda: send(client, GOOD).status_code == 200)
