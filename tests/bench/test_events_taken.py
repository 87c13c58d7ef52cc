"""What a killed job's batches had is read from its checkpoint."""

from pathlib import Path

from bench.standing.events_taken import events_taken, is_at_its_end


def write(path: Path, *lines: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(["v1", *lines]))


def test_a_batch_may_have_the_files_of_two_and_streams_their_own(tmp_path: Path) -> None:
    for number, name in enumerate(("quotes", "trades")):
        noted = f'{{"path":"file:///in/{name}/00000.parquet","batchId":0}}'
        write(tmp_path / "sources" / f"{number}" / "0", noted)
    for batch, (quotes, trades) in enumerate([(0, 0), (2, 1), (2, 2), (2, 2)]):
        ends = [f'{{"logOffset":{end}}}' for end in (quotes, trades)]
        write(tmp_path / "offsets" / f"{batch}", "{}", *ends)
    for batch in range(3):
        write(tmp_path / "commits" / f"{batch}", "{}")
    assert [{name: [*files] for name, files in of.items()} for of in events_taken(tmp_path)] == [
        {"quotes": [0], "trades": [0]},
        {"quotes": [1, 2], "trades": [1]},
        {"quotes": [], "trades": [2]},
        {"quotes": [], "trades": []},
    ]
    assert is_at_its_end(tmp_path, 3)
    assert not is_at_its_end(tmp_path, 3, further=1)
    assert not is_at_its_end(tmp_path, 4)
    write(tmp_path / "commits" / "3", "{}")
    assert is_at_its_end(tmp_path, 3, further=1)
