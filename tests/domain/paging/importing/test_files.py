"""Files of exports: broken, huge and malicious files are rejected with a message."""

import json
import zipfile
from pathlib import Path

import pytest

from domain.core.errors import InvalidError
from domain.paging.importing import export_files
from domain.paging.importing.export_files import read_documents


def archive(path: Path, **contents: bytes) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name, content in contents.items():
            made.writestr(name.replace("__", "/") + ".json", content)
    return path


def test_files_folders_and_archives_have_the_same_result(tmp_path: Path) -> None:
    folder = tmp_path / "backup" / "users"
    folder.mkdir(parents=True)
    (folder / "a.json").write_bytes(b"\xef\xbb\xbf[1]")
    (folder / "notes.txt").write_text("no JSON")
    (folder / "linked.json").symlink_to("/etc/hostname")
    packed = archive(tmp_path / "backup.zip", users__a=b"[1]")
    for path in (tmp_path / "backup", packed):
        (document,) = read_documents(path)
        assert (document.name, document.value) == ("users/a.json", [1])
        assert (document.folder, document.stem) == ("users", "a")
    (alone,) = read_documents(folder / "a.json")
    assert alone.value == [1]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "is empty"),
        (b"{", "not JSON"),
        (b"[" * 100_000, "nested deeper"),
        (b"[NaN]", "NaN"),
        (b"\xff\xfe[\x00", "not"),
    ],
)
def test_other_files_than_json_are_rejected_with_their_name(
    tmp_path: Path, content: bytes, words: str
) -> None:
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(InvalidError, match=r"a\.json") as refused:
        read_documents(tmp_path)
    assert words in str(refused.value)


def test_a_zip_bomb_is_rejected_before_it_is_unpacked(tmp_path: Path) -> None:
    bomb = archive(tmp_path / "bomb.zip", users__a=b" " * (export_files.MAX_FILE_BYTES + 1))
    assert bomb.stat().st_size < 100_000
    with pytest.raises(InvalidError, match="A file can have at most"):
        read_documents(bomb)


def test_many_large_files_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(export_files, "MAX_EXPORT_BYTES", 1_000)
    bomb = archive(tmp_path / "bomb.zip", **{f"users__{number}": b"1" * 300 for number in range(4)})
    with pytest.raises(InvalidError, match="An export can have at most"):
        read_documents(bomb)
    monkeypatch.setattr(export_files, "MAX_EXPORT_FILES", 3)
    with pytest.raises(InvalidError, match="at most 3 files"):
        read_documents(bomb)


def test_a_broken_or_encrypted_archive_is_rejected(tmp_path: Path) -> None:
    packed = archive(tmp_path / "a.zip", users__a=json.dumps(["x"] * 1000).encode())
    content = bytearray(packed.read_bytes())
    content[60] ^= 0xFF
    packed.write_bytes(bytes(content))
    with pytest.raises(InvalidError, match="zip archive"):
        read_documents(packed)


def test_folders_without_json_and_missing_paths_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(InvalidError, match="no JSON files"):
        read_documents(tmp_path)
    with pytest.raises(InvalidError, match="cannot be read"):
        read_documents(tmp_path / "nothing")
