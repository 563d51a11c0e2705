"""Reading tables, as text and as Parquet."""

import numpy as np
import pandas
import pytest

from noisyica.data import Images, labels, read
from tests.data_files import X, write_text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("plain.csv", "a,b\n1,2.5\n-3e2,4\n"),
        ("windows.csv", "a,b\r\n1,2.5\r\n-3e2,4\r\n"),
        ("bom.csv", "\ufeffa,b\n1,2.5\n-3e2,4\n"),
        ("quotes.csv", '"a","b"\n"1","2.5"\n"-3e2","4"'),
        ("spaces.csv", "a, b\n 1 , 2.5\n-3e2, 4\n\n\n"),
        ("semicolon.csv", "a;b\n1;2,5\n-3e2;4\n"),
        ("both.csv", "a;b\n1.0;2,5\n-3e2;4\n"),
        ("tab.tsv", "a\tb\n1\t2.5\n-3e2\t4\n"),
        ("tab.txt", "a\tb\n1\t2.5\n-3e2\t4\n"),
        ("comma.txt", "a,b\n1,2.5\n-3e2,4\n"),
        ("space.txt", "# numbers\na b\n1   2.5\n  -3e2 4\n"),
        ("UPPER.CSV", "a,b\n1,2.5\n-3e2,4\n"),
    ],
)
def test_dialects_of_text(tmp_path, name, text):
    data = read(write_text(tmp_path / name, text))
    np.testing.assert_array_equal(data.X, [[1, 2.5], [-300, 4]])
    assert list(data.layout.names) == ["a", "b"]
    assert list(data.ids) == ["0", "1"]
    assert not data.others


@pytest.mark.parametrize(
    ("name", "text", "cell"),
    [
        ("first.csv", "a;b\n1.234,5;2,5\n987,1;4\n", "1.234,5"),
        ("second.csv", "a;b\n2,5;1.234,5\n4;12.345.678\n", "1.234,5"),
        ("no heading.csv", "1.234,5;2,5\n2.987,1;4\n", "1.234,5"),
        ("quoted.csv", 'a,b\n1,"1,234.5"\n2,"2,345.5"\n', "1,234.5"),
        ("semicolon.csv", "a;b\n1;1,234.5\n2;2,345.5\n", "1,234.5"),
        ("swiss.csv", "a,b\n1,1'234.5\n2,17\n", "1'234.5"),
        ("french.csv", "a;b\n1;1 234,5\n2;17,1\n", "1 234,5"),
        # thousands in one column by itself could be decimals
        ("dots.csv", "a;b\n0,5;1.234\n0,25;2.500\n", "1.234"),
        ("commas.csv", "a;b\n0.5;1,234\n0.25;2,500\n", "1,234"),
        ("one column.csv", "a;b\n1;1.234\n2;2,5\n", "1.234"),
    ],
)
def test_separated_thousands_are_refused(tmp_path, name, text, cell):
    with pytest.raises(ValueError, match=f"'{cell}'|\"{cell}\"") as error:
        read(write_text(tmp_path / name, text))
    assert "thousands" in str(error.value)


def test_decimal_commas_without_heading(tmp_path):
    """The first line is numbers, not names."""
    data = read(write_text(tmp_path / "t.csv", "1,5;2,5\n3,5;4\n"))
    np.testing.assert_array_equal(data.X, [[1.5, 2.5], [3.5, 4]])


def test_ids_that_look_like_thousands(tmp_path):
    path = write_text(tmp_path / "t.csv", "code;a\n1.234.567;2,5\n1.234.568;4\n")
    assert list(read(path, id_column="code").ids) == ["1.234.567", "1.234.568"]
    np.testing.assert_array_equal(read(path, columns=["a"]).X, [[2.5], [4]])


def test_ids_others_and_missing_entries(tmp_path):
    path = write_text(
        tmp_path / "t.csv", 'who,a,sex,b,visit\n"Smith, J",1,f,NA,1_2\nLee,,m,nan,3_4\n,3,f,n/a,5\n'
    )
    data = read(path)
    np.testing.assert_array_equal(data.X, [[1, np.nan], [np.nan, np.nan], [3, np.nan]])
    assert list(data.ids) == ["Smith, J", "Lee", ""]
    assert {key: list(value) for key, value in data.others.items()} == {
        "sex": ["f", "m", "f"],
        "visit": ["1_2", "3_4", "5"],
    }
    by_name = read(path, id_column="visit")
    assert list(by_name.ids) == ["1_2", "3_4", "5"]
    assert list(by_name.others) == ["who", "sex"]
    assert (
        list(read(path, id_column=4).ids)
        == list(read(path, id_column="4").ids)
        == list(by_name.ids)
    )
    chosen = read(path, columns=["a"])
    np.testing.assert_array_equal(chosen.X[:, 0], [1, np.nan, 3])
    assert list(chosen.others) == ["sex", "b", "visit"]
    assert list(labels(data, "sex")) == ["f", "m", "f"]


@pytest.mark.parametrize(
    ("text", "ids", "columns"),
    [
        ("id,a\n007,1\n8,2\n", ["007", "8"], ["a"]),
        (",a\n0,1\n1,2\n", ["0", "1"], ["a"]),  # as pandas writes it
        ("1,2\n3,4\n", ["0", "1"], ["column0", "column1"]),
        ("column0,a\n1,2\n3,4\n", ["0", "1"], ["column0", "a"]),
        ("s1,2\ns2,4\n", ["s1", "s2"], ["column1"]),
        ("group,a\nx,2\nx,4\n", ["0", "1"], ["a"]),
        ("id,a\n5,2\n5,4\n", ["0", "1"], ["a"]),  # neither ids, as they repeat, nor data
        ("7,8\n", ["0"], ["column0", "column1"]),
    ],
)
def test_which_column_is_the_ids(tmp_path, text, ids, columns):
    data = read(write_text(tmp_path / "t.csv", text))
    assert list(data.ids) == ids
    assert list(data.layout.names) == columns


def test_text_that_appears_late(tmp_path):
    """A column that begins like numbers, for longer than the reader looks at in one go."""
    second = [*map(str, range(400)), *(f"word{i}" for i in range(500))]
    lines = [f"{i},{cell}" for i, cell in enumerate(second)]
    data = read(write_text(tmp_path / "t.csv", "\n".join(["a,b", *lines])))
    np.testing.assert_array_equal(data.X[:, 0], np.arange(900))
    assert list(data.others["b"]) == second


@pytest.mark.parametrize("quote", ["", '"'])
def test_tables_of_many_columns(tmp_path, quote):
    wide = np.random.default_rng(0).normal(size=(2, 8000))
    path = write_text(
        tmp_path / "t.csv",
        "\n".join(
            ",".join([f"{quote}s{i}{quote}", *map(repr, row.tolist())])
            for i, row in enumerate(wide)
        ),
    )
    data = read(path)
    np.testing.assert_array_equal(data.X, wide)
    assert list(data.ids) == ["s0", "s1"]


def test_rows_of_a_table_are_images(tmp_path):
    np.savetxt(tmp_path / "t.csv", X, delimiter=",", fmt="%.17g")
    data = read(tmp_path / "t.csv", shape=(3, 4))
    np.testing.assert_array_equal(data.X, X)
    assert isinstance(data.layout, Images)
    assert list(data.layout.shape) == [3, 4]
    assert list(read(tmp_path / "t.csv", shape=(2, 2, 3)).layout.shape) == [2, 2, 3]


def test_parquet(tmp_path):
    frame = pandas.DataFrame(
        {
            "a": [1.5, np.nan, 3.0],
            "b": pandas.array([1, None, 3], dtype="Int64"),
            "flag": [True, False, True],
            "sex": pandas.Categorical(["f", "m", "f"]),
            "day": pandas.to_datetime(["2020-01-01", "2020-01-02", "2020-01-03"]),
            "note": ["x", None, "z"],
        },
        index=["s1", "s2", "s3"],
    )
    frame.to_parquet(tmp_path / "t.parquet")
    data = read(tmp_path / "t.parquet")
    np.testing.assert_array_equal(data.X, [[1.5, 1, 1], [np.nan, np.nan, 0], [3, 3, 1]])
    assert list(data.layout.names) == ["a", "b", "flag"]
    assert list(data.ids) == ["s1", "s2", "s3"]
    assert list(data.others["sex"]) == ["f", "m", "f"]
    assert list(data.others["note"]) == ["x", "", "z"]
    assert data.others["day"][1] == np.datetime64("2020-01-02")
    chosen = read(tmp_path / "t.parquet", id_column="day", columns=["b", "a"])
    np.testing.assert_array_equal(chosen.X, data.X[:, [1, 0]])
    assert chosen.ids[0].startswith("2020-01-01")
    assert "flag" in chosen.others
    frame[["a"]].astype("float32").reset_index(drop=True).to_parquet(tmp_path / "single.parquet")
    single = read(tmp_path / "single.parquet")
    assert single.X.dtype == np.float32
    assert list(single.ids) == ["0", "1", "2"]
