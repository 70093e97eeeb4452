"""The running call: what may end it, and calls inside calls."""

from __future__ import annotations

import signal
import threading

import numpy as np
import pytest

from kernelopt import running
from kernelopt.errors import Stopped
from kernelopt.running import Call, check, running_call, say, seconds_left
from kernelopt.threads import interruptible
from tests.calls import endless


def test_outside_of_a_call_nothing_is_limited():
    check()
    say("nobody reads this")
    assert running_call() is None
    assert seconds_left() == np.inf


def test_a_call_ends_at_its_deadline(clock):
    done = []
    with Call(10.0) as call:
        for clock.now in (0.0, 9.0, 10.0):
            check()
            done.append(seconds_left())
    assert done == [10.0, 1.0]
    assert running_call() is None and call.out_of_time
    check()  # what follows is not interrupted


def test_a_call_inside_another_obeys_both_deadlines(clock):
    with Call(10.0):
        with Call(3.0):
            assert seconds_left() == 3.0
        with Call(30.0):
            assert seconds_left() == 10.0
        with Call():
            assert seconds_left() == 10.0


def test_the_deadline_of_a_call_ends_its_own_block(clock):
    reached = []
    with Call(10.0):
        with Call(3.0):
            clock.now = 3.0
            check()
            reached.append("inside")
        check()
        reached.append("after the inner call")
        with Call(30.0):
            clock.now = 10.0
            check()
            reached.append("inside again")
        reached.append("never")
    assert reached == ["after the inner call"]


def test_after_a_nested_block_of_one_call_its_results_are_gathered(clock):
    with Call() as outer:
        call = Call(10.0)
        with call:
            with call:
                clock.now = 11.0
                check()
            assert running_call() is outer
            check()
        assert running_call() is outer
    assert running_call() is None


def test_other_exceptions_pass():
    with pytest.raises(ZeroDivisionError), Call():
        raise ZeroDivisionError
    assert running_call() is None


def test_control_c_ends_the_inner_call_and_leaves_the_outer_one_a_moment(clock):
    outer = Call()
    with outer:
        with Call() as inner:
            raise KeyboardInterrupt
        signal.raise_signal(signal.SIGINT)  # nothing happens: the calls return
        inner.close()
        signal.raise_signal(signal.SIGINT)  # nor after the end of the inner one
        assert inner.interrupted and outer.interrupted
        assert seconds_left() == running.HURRY
        clock.now = 1.0
        check()
        raise AssertionError("the call goes on")
    outer.close()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_threads_of_interruptible_work_see_the_call_and_others_do_not():
    seen = []
    with endless() as call:
        interruptible(lambda: seen.append(running_call()), lambda: None)
        thread = threading.Thread(target=lambda: seen.append(running_call()))
        thread.start()
        thread.join()
    assert seen == [call, None]


def test_stopped_without_a_deadline_ends_the_innermost_call():
    after = []
    with Call():
        with Call():
            raise Stopped  # such as before a step that would take too long
        after.append(True)
    assert after
