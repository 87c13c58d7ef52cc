"""Where answers are kept: a folder of the driver's machine, or one that Hadoop knows."""

from __future__ import annotations

import os
from pathlib import Path

from eddyline import catalyst
from eddyline.errors import LedgerError
from eddyline.keeping.answer_store import FILE, AnswerStore
from eddyline.keeping.folder_of_files import FolderOfFiles
from eddyline.keeping.keep import is_url, keep_in
from eddyline.keeping.kept_answers import opened
from eddyline.keeping.shared_store import SharedStore
from eddyline.reports.ledger_report import Ledger


def files_in(folder: str) -> FolderOfFiles | None:
    """Return the files of a folder that has a URL, None for one of the driver's machine.

    LedgerError where Spark knows no such file system, or does not run.
    """
    if not is_url(folder):
        return None
    scheme = folder.partition(":")[0]
    try:
        known = catalyst.knows_file_system(scheme)
    except OSError as error:
        raise LedgerError(f"the ledger {folder} cannot be opened: {error}") from error
    if not known:
        raise LedgerError(f"{folder}: Spark has no file system for {scheme}:")
    return catalyst.HadoopFolder(folder)


def ledger(folder: str | os.PathLike[str]) -> Ledger:
    """Return the ledger in a folder, which ``keep=`` of functions and lookup tables has filled.

    It shows for each function and lookup table how many answers are kept, how large they are, how
    many calls they have spared, and what these would have cost; and it removes answers by function,
    version, key or age. Other applications may use the ledger meanwhile. A folder with a URL, as
    "s3a://bucket/answers", is reached through Spark, which must be running.

    Raises ``LedgerError`` where there is none, it cannot be reached, or it is damaged or of a newer
    Eddyline.
    """
    keep = keep_in(folder, None, None)
    place = "" if keep is None else keep.folder
    files = files_in(place)
    if files is None and (Path(place) / FILE).exists():
        return Ledger(AnswerStore(Path(place)))
    if files is not None:
        store = opened(place, files).store
        if isinstance(store, SharedStore) and not store.is_empty:
            return Ledger(store, own=False)
    raise LedgerError(f"there is no ledger in {place}: keep= makes one with the first answer")
