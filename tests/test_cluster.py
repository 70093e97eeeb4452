"""Sweeps on a Dask cluster of two processes: the same bits, also where workers and clients die."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from itertools import pairwise
from pathlib import Path

import joblib
import numpy as np
import pytest

import kernelopt as ko
from formulations import lp_norm
from kernelopt.cluster import DaskRows
from kernelopt.errors import FileError, InputError, NotFiniteError, ParameterError, SolverError
from kernelopt.grams import evaluated
from kernelopt.grams import rows as blocks
from kernelopt.grams.rows import ArrayRows, FileRows
from kernelopt.grams.sweeps import summary
from kernelopt.learner.smo import smo_pairs
from kernelopt.numerics.compiling import compiled

distributed = pytest.importorskip("distributed", reason="kernelopt[cluster] is not installed")

SIZES = [700, 300, 1100, 600]
N = sum(SIZES)
STARTS = np.cumsum([0, *SIZES])
WIDTHS = (0.5, 1.0, 3.0)


def started(workers):
    return distributed.LocalCluster(
        n_workers=workers, threads_per_worker=1, dashboard_address=":0", scheduler_port=0
    )


@pytest.fixture(autouse=True)
def machine_code():
    """The loop of the search that Python, until it is compiled, rounds otherwise."""
    compiled(smo_pairs)


@pytest.fixture(scope="module")
def cluster():
    with started(2) as cluster:
        yield cluster


@pytest.fixture
def client(cluster):
    with distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        yield client


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((N, 4))


@pytest.fixture
def folder(X, tmp_path):
    for k, (a, b) in enumerate(pairwise(STARTS)):
        np.save(tmp_path / f"{k:03}.npy", X[a:b])
    return tmp_path


def labels(X):
    return np.where(X[:, 0] * X[:, 1] > 0.1 * X[:, 2], 1, -1)


def problem(points, X):
    grams = ko.Grams.from_kernels([ko.gaussian(w) for w in WIDTHS], points)
    return lp_norm.primal(grams, labels(X), p=1)


def solved(points, X, tol=1e-3, **options):
    return problem(points, X).solve("newton", tol=tol, **options)


def equal(a, b):
    assert (a.lower, a.upper) == (b.lower, b.upper)
    np.testing.assert_array_equal(a.alpha, b.alpha)
    np.testing.assert_array_equal(a.weights, b.weights)


def pattern(folder):
    return str(folder / "*.npy")


def numbers(X, numbers, payload):
    return numbers


def dies(X, numbers, payload):
    os.kill(os.getpid(), signal.SIGKILL)


def kill_one(client):
    """Kill the process of a worker and return its address."""
    address, pid = next(iter(client.run(os.getpid).items()))
    os.kill(pid, signal.SIGKILL)
    return address


def killing(monkeypatch, client, at):
    """Let a worker die after the first result of the first sweep `at`; return the addresses of the dead."""
    original, dead = DaskRows._results, []

    def results(self, futures, blocks):
        for found in original(self, futures, blocks):
            yield found
            if str(futures[0].key).startswith(at) and not dead:
                dead.append(kill_one(client))

    monkeypatch.setattr(DaskRows, "_results", results)
    return dead


@pytest.mark.parametrize("tol", [1e-3, 1e-5])
def test_the_result_of_two_workers_is_that_of_one_process(X, folder, client, tol):
    expected = solved(ArrayRows(X, SIZES), X, tol)
    assert expected.gap <= tol
    equal(solved(ko.cluster.rows(pattern(folder), client), X, tol), expected)
    equal(solved(ko.cluster.rows(sorted(folder.iterdir())), X, tol), expected)


def test_forms_and_means_over_all_pairs_have_the_same_bits(X, folder, client, monkeypatch):
    monkeypatch.setattr(evaluated, "all_cached", lambda shape: False)
    alpha = np.zeros(N)
    alpha[np.random.default_rng(1).permutation(N)[:900]] = np.random.default_rng(2).standard_normal(900)
    kernels = [ko.gaussian(w) for w in WIDTHS] + [ko.laplacian(1.0)]
    points = ko.cluster.rows(pattern(folder), client)
    near, far = (ko.Grams.from_kernels(kernels, rows).storage for rows in (ArrayRows(X, SIZES), points))
    for name in ("forms", "passing_forms"):
        np.testing.assert_array_equal(getattr(far, name)(alpha), getattr(near, name)(alpha))
    expected = [alpha @ np.asarray(k(X)) @ alpha for k in kernels]
    np.testing.assert_allclose(far.forms(alpha), expected, rtol=1e-11)


def test_only_the_workers_see_the_files(X, folder, client, monkeypatch):
    expected = solved(ArrayRows(X, SIZES), X)

    def unseen(*arguments, **options):
        raise FileNotFoundError(arguments)

    for place, name in ((np, "load"), (Path, "glob"), (blocks, "mark")):  # in this process
        monkeypatch.setattr(place, name, unseen)
    equal(solved(ko.cluster.rows(pattern(folder), client), X), expected)


def test_a_single_file_is_cut_into_blocks(X, tmp_path, client):
    np.save(tmp_path / "one.npy", X)
    points = ko.cluster.rows([tmp_path / "one.npy"], client)
    assert [block.stop for block in points.blocks] == [2048, N]
    equal(solved(points, X), solved(X, X))


def test_a_block_with_nan_or_a_change_is_named(X, folder, client):
    points, path = ko.cluster.rows(pattern(folder), client), folder / "001.npy"
    points.check_unchanged()
    before = path.stat()
    np.save(path, X[: SIZES[1]])
    with pytest.raises(FileError, match=r"001.npy.*must stay as it was"):
        points.take(np.array([800]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(FileError, match=r"001.npy.*must stay as it was"):
        points.check_unchanged()
    with pytest.raises(FileError, match=r"001.npy.*must stay as it was"):
        solved(points, X)
    np.save(path, np.full((3, 4), np.nan))
    with pytest.raises(NotFiniteError, match=r"001.npy.*finite numbers"):
        ko.cluster.rows(pattern(folder), client)
    path.unlink()
    with pytest.raises(FileError, match=r"001.npy"):
        points.check_unchanged()


def test_wrong_arguments_say_what_to_do(folder, client):
    with pytest.raises(FileError, match=r"at least one .npy file.*Check the pattern"):
        ko.cluster.rows(str(folder / "*.csv"))
    with pytest.raises(InputError, match="must be a distributed.Client, got '127.0.0.1:8786'"):
        ko.cluster.rows(pattern(folder), "127.0.0.1:8786")
    with pytest.raises(ParameterError, match="patience"):
        ko.cluster.rows(pattern(folder), client, patience=0)
    with pytest.raises(ParameterError, match="at most 400 blocks, got 404"):
        ko.cluster.rows(sorted(folder.glob("*.npy")) * 101, client)


@pytest.mark.slow
def test_one_worker_has_the_bits_of_two(X, folder, client):
    expected = solved(ko.cluster.rows(pattern(folder), client), X)
    with started(1) as one, distributed.Client(one) as other:
        equal(solved(ko.cluster.rows(pattern(folder), other), X), expected)


@pytest.mark.slow
@pytest.mark.parametrize("at", ["summary", "taken", "predictions", "forms"])
def test_a_worker_that_dies_in_a_sweep_changes_no_bit(X, folder, cluster, client, monkeypatch, at):
    expected = solved(ArrayRows(X, SIZES), X)
    dead = killing(monkeypatch, client, at)
    points = ko.cluster.rows(pattern(folder), client)
    found = solved(points, X)
    assert len(dead) == 1
    equal(found, expected)
    keys = {future.key for future in points._loaded}
    story = cluster.scheduler.story(*keys)  # (key, start, finish, recommendations, stimulus, time)
    loads = Counter(entry[0] for entry in story if entry[0] in keys and entry[2] == "memory")
    assert set(loads) == keys
    assert sum(loads.values()) <= 2 * len(keys) - 1  # the other worker has one block at least


@pytest.mark.slow
def test_a_block_that_is_loaded_again_must_be_as_it_was(X, folder, client):
    points, path = ko.cluster.rows(pattern(folder), client), folder / "001.npy"
    before = path.stat()
    np.save(path, X[: SIZES[1]])
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert len(list(points.each(numbers, None))) == len(SIZES)  # the workers have what they have read
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(FileError, match=r"001.npy.*must stay as it was"):
        list(points.each(numbers, None))


@pytest.mark.slow
def test_a_block_that_kills_its_workers_is_an_error(folder):
    """Dask gives up after four workers, or has none left where it does not start them again in time."""
    with started(2) as cluster, distributed.Client(cluster) as client:
        points = ko.cluster.rows(pattern(folder), client, patience=20)
        with pytest.raises(SolverError, match=r"npy' (was lost with each worker|needs a worker)"):
            list(points.each(dies, None))


@pytest.mark.slow
def test_a_cluster_without_workers_is_an_error(X, folder):
    with started(2) as cluster, distributed.Client(cluster) as client:
        points = ko.cluster.rows(pattern(folder), client, patience=1.5)
        cluster.scale(0)
        began = time.monotonic()
        with pytest.raises(SolverError, match=r"000.npy' needs a worker, got none for 1.5 s"):
            list(points.each(summary, True))
        assert time.monotonic() - began < 30
        with pytest.raises(ko.errors.TimeLimitError):
            problem(points, X).solve("newton", time_limit=0.5)


CALL = """
import sys
import numpy as np
from distributed import Client
from tests.test_cluster import problem
import kernelopt as ko
if __name__ == "__main__":
    X = np.load(sys.argv[3])
    with Client(sys.argv[1]) as client:
        points = ko.cluster.rows(sys.argv[2], client)
        problem(points, X).solve("newton", tol=1e-9, checkpoint=sys.argv[4])
"""


@pytest.mark.slow
def test_a_client_that_dies_goes_on_from_its_checkpoint(X, folder, cluster, client, tmp_path):
    (tmp_path / "all").mkdir()
    every, checkpoint = tmp_path / "all" / "X.npy", tmp_path / "run.npz"
    np.save(every, X)
    arguments = [cluster.scheduler_address, pattern(folder), str(every), str(checkpoint)]
    root = Path(__file__).parents[1]
    with subprocess.Popen([sys.executable, "-c", CALL, *arguments], cwd=root) as call:  # noqa: S603
        until = time.monotonic() + 120
        while not checkpoint.exists() and call.poll() is None and time.monotonic() < until:
            time.sleep(0.01)
        call.kill()
    assert checkpoint.exists()
    copy = checkpoint.read_bytes()
    found = solved(ko.cluster.rows(pattern(folder), client), X, checkpoint=checkpoint)
    checkpoint.write_bytes(copy)
    equal(found, solved(FileRows(sorted(folder.glob("*.npy"))), X, checkpoint=checkpoint))
    assert found.gap <= 1e-3


@pytest.mark.slow
def test_folds_of_an_estimator_are_spread_by_joblib(X, cluster, client):
    from kernelopt.estimators import MKLClassifierCV

    y = labels(X)[:150]
    model = MKLClassifierCV(kernels=[ko.gaussian(w) for w in WIDTHS], n_jobs=2)
    expected = model.fit(X[:150], y).predict(X)
    with joblib.parallel_config("dask"):
        np.testing.assert_array_equal(model.fit(X[:150], y).predict(X), expected)
    keys = {entry[0] for entry in cluster.scheduler.transition_log if entry[2] == "memory"}
    assert sum("scored_within" in str(key) for key in keys) >= 2  # tasks of the cluster
