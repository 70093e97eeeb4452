"""The certificates that the tests of files share."""

import pytest

from tests.certificates.saved import PROBLEMS, save


@pytest.fixture(scope="session")
def saved(tmp_path_factory):
    """Solve and save the problem of a name, once."""
    folder, known = tmp_path_factory.mktemp("certificates"), {}

    def file(name):
        if name not in known:
            known[name] = save(PROBLEMS[name](), folder / f"{len(known)}.npz")
        return known[name]

    return file


@pytest.fixture
def target(tmp_path):
    return tmp_path / "changed.npz"
