"""Ctrl-C in the library: noted while a fit runs, raised where it can stop, and never lost."""

import contextlib
import gc
import os
import signal
import threading

import numpy as np
import pytest

from noisyica import NoisyICA, interruption

X = np.random.default_rng(0).laplace(size=(40, 2)) @ np.ones((2, 5)) + np.eye(40, 5)


@pytest.fixture(autouse=True)
def usual():
    """Ctrl-C means what it means in Python, and is left so."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert not interruption.pressed()
    signal.signal(signal.SIGINT, before)


def press():
    os.kill(os.getpid(), signal.SIGINT)


def held(*steps):
    """Take steps while Ctrl-C is held; return how many were done before KeyboardInterrupt."""
    done = []
    with contextlib.suppress(KeyboardInterrupt), interruption.held():
        for step in steps:
            step()
            done.append(step)
        done.append("all, and no KeyboardInterrupt at the end")
    return len(done)


def nothing():
    pass


def test_held_until_it_is_asked_for():
    assert held(press, nothing, interruption.check, nothing) == 2
    assert held(nothing, interruption.check) == 3  # and then it is forgotten


def test_held_until_the_block_ends():
    with pytest.raises(KeyboardInterrupt), interruption.held():
        press()
    assert held(nothing) == 2


def test_the_second_one_is_not_held():
    assert held(press, nothing, press, nothing) == 2


def test_an_error_takes_its_place():
    with contextlib.suppress(ValueError), interruption.held():
        press()
        raise ValueError


def test_programs_that_handle_it_themselves():
    seen = []
    signal.signal(signal.SIGINT, lambda *_: seen.append("own"))
    with interruption.held():
        press()
        interruption.check()
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert seen == ["own"]


def test_other_threads_are_not_interrupted():
    def work():
        with interruption.held():
            interruption.check()
        done.append(True)

    done = []
    thread = threading.Thread(target=work)
    assert held(press, thread.start, thread.join, interruption.check) == 3
    assert done


def estimator(**settings):
    return NoisyICA(2, max_iter=100, tol=0, random_state=0, verbose=False, **settings)


def test_an_interruption_is_not_swallowed_by_a_garbage_collection():
    """JAX has the compiler called back by the garbage collector, where exceptions are dropped."""

    def collect(phase, info):
        if phase == "start" and armed:
            armed.clear()
            press()

    def tell(iteration, model):
        armed.append(iteration)
        gc.collect()

    armed = []
    ica = estimator(callback=tell)
    gc.callbacks.append(collect)
    try:
        with pytest.raises(KeyboardInterrupt, match="of 100 iterations"):
            ica.fit(X)
    finally:
        gc.callbacks.remove(collect)
    assert 0 < ica.n_iter_ < 100
    assert ica.transform(X[:2]).shape == (2, 2)


@pytest.mark.parametrize("moment", ["before the first iteration", "at the last look"])
def test_an_interruption_at_either_end(tmp_path, monkeypatch, moment):
    """Nothing is learnt yet, or everything is: it is a KeyboardInterrupt all the same."""
    from noisyica.engine import task as module

    path = tmp_path / "checkpoint.npz"
    ica = estimator(checkpoint=path)
    if moment == "at the last look":
        ica.callback = lambda iteration, model: press() if iteration == 100 else None
    else:
        begin = module.begin
        monkeypatch.setattr(module, "begin", lambda *args: press() or begin(*args))
    with pytest.raises(KeyboardInterrupt):
        ica.fit(X)
    monkeypatch.undo()
    assert hasattr(ica, "components_") == path.exists() == (moment == "at the last look")
    whole = estimator().fit(X)
    ica.callback = None
    np.testing.assert_array_equal(ica.fit(X).components_, whole.components_)
