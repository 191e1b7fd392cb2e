"""Runs a Celery worker and what its users do with it: run.py classic|quorum HOST PORT. Exit 1 when anything goes wrong."""

import os
import subprocess
import sys
import threading
import time
from datetime import datetime, timedelta, timezone

os.environ["INTEROP_QUEUE_TYPE"] = sys.argv[1]
os.environ["INTEROP_BROKER"] = "amqp://guest:guest@%s:%s//" % (sys.argv[2], sys.argv[3])

from celery import chain
from celery.exceptions import TaskRevokedError

import tasks

WAIT_SECONDS = 45  # the machine may be busy with other things


def expect(got, want, what):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def wait_until(condition, what):
    deadline = time.monotonic() + WAIT_SECONDS
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError("timed out: " + what)
        time.sleep(0.05)


class Events(threading.Thread):
    """Collects the worker's events."""

    def __init__(self):
        super().__init__(daemon=True)
        self.seen = []
        self.ready = threading.Event()

    def run(self):
        with tasks.app.connection() as connection:
            receiver = tasks.app.events.Receiver(connection, handlers={"*": self.seen.append})
            receiver.on_consume_ready = lambda *args, **more: self.ready.set()
            receiver.capture(limit=None, timeout=None, wakeup=True)

    def count(self, kind, ids=None):
        return sum(1 for e in list(self.seen) if e["type"] == kind and (ids is None or e.get("uuid") in ids))


def thousand_tasks(events):
    results = [tasks.add.apply_async((i, i), priority=i % 10) for i in range(1000)]
    expect([r.get(timeout=WAIT_SECONDS) for r in results], [2 * i for i in range(1000)], "results of 1000 tasks")
    ids = {r.id for r in results}
    for kind in ("task-sent", "task-received", "task-started", "task-succeeded"):
        wait_until(lambda: events.count(kind, ids) >= 1000, "1000 events " + kind)
        expect(events.count(kind, ids), 1000, kind)


def workflow(events):
    expect(chain(tasks.add.s(1, 2), tasks.add.s(3), tasks.add.s(4))().get(timeout=WAIT_SECONDS), 10, "chain")


def eta(events):
    started = datetime.now(timezone.utc)
    due = started + timedelta(seconds=2)
    at_a_time, after, plain = tasks.now.apply_async(eta=due), tasks.now.apply_async(countdown=1), tasks.now.delay()
    expect(plain.get(timeout=WAIT_SECONDS) > 0, True, "a task without either")
    expect(after.get(timeout=WAIT_SECONDS) >= started.timestamp() + 0.99, True, "a task with a countdown waits")
    expect(at_a_time.get(timeout=WAIT_SECONDS) >= due.timestamp() - 0.01, True, "a task with an ETA waits")


def retries(events):
    expect(tasks.flaky.delay(2).get(timeout=WAIT_SECONDS), 3, "runs until it passes")
    hopeless = tasks.flaky.delay(9)
    try:
        hopeless.get(timeout=WAIT_SECONDS)
        raise AssertionError("a task that always fails passed")
    except ValueError as error:
        expect((str(error), hopeless.state), ("attempt 3", "FAILURE"), "the last failure")
    wait_until(lambda: events.count("task-retried", {hopeless.id}) >= 3, "three retries in the events")
    wait_until(lambda: events.count("task-failed", {hopeless.id}), "task-failed")


def lost_process(events):
    expect(tasks.dies_once.delay().get(timeout=WAIT_SECONDS), "redelivered", "after its process died")


def autoscale(events):
    inspect = tasks.app.control.inspect(timeout=2)

    def processes():
        return [stats["autoscaler"]["current"] for stats in (inspect.stats() or {}).values()]

    results = [tasks.slow.delay(1) for _ in range(16)]
    wait_until(lambda: processes() == [4], "the worker grows to four processes")
    expect([r.get(timeout=WAIT_SECONDS) for r in results], [1] * 16, "slow tasks")


def remote_control(events):
    control = tasks.app.control
    expect([list(answer.values()) for answer in control.ping(timeout=5, limit=1)], [[{"ok": "pong"}]], "ping")
    running = tasks.slow.delay(3)
    inspect = control.inspect(timeout=2)

    def ids(answer):
        return [t["id"] for listed in (answer or {}).values() for t in listed]

    wait_until(lambda: running.id in ids(inspect.active()), "the running task is listed as active")
    registered = [name for names in inspect.registered().values() for name in names]
    expect("tasks.add" in registered, True, "registered tasks")
    answer = control.rate_limit("tasks.add", "1000/s", reply=True, timeout=5, limit=1)
    expect(list(answer[0].values()), [{"ok": "new rate limit set successfully"}], "rate limit")
    control.add_consumer("interop-extra", reply=True, timeout=5, limit=1)
    expect(tasks.add.apply_async((1, 1), queue="interop-extra").get(timeout=WAIT_SECONDS), 2, "from an added queue")
    expect(running.get(timeout=WAIT_SECONDS), 3, "the running task")


def revoke(events):
    waiting, running = tasks.add.apply_async((1, 1), countdown=3), tasks.endless.delay()
    waiting.revoke()
    # The event of the start comes from the worker's main process; a signal could still come before the task itself.
    wait_until(lambda: events.count("task-there", {running.id}), "the task runs")
    running.revoke(terminate=True)
    for result in (waiting, running):
        try:
            result.get(timeout=WAIT_SECONDS)
            raise AssertionError("a revoked task passed")
        except TaskRevokedError:
            expect(result.state, "REVOKED", "state")
    wait_until(lambda: events.count("task-revoked", {waiting.id, running.id}) >= 2, "task-revoked")


def main():
    here = os.path.dirname(os.path.abspath(__file__))
    events = Events()
    events.start()
    expect(events.ready.wait(WAIT_SECONDS), True, "the receiver of events is ready")
    worker = subprocess.Popen(
        [sys.executable, "-B", "-m", "celery", "-A", "tasks", "worker", "--autoscale=4,1", "-E", "--loglevel=INFO",
         "--hostname=interop@localhost"], cwd=here)
    try:
        wait_until(lambda: events.count("worker-online") or worker.poll() is not None, "the worker is online")
        expect(worker.poll(), None, "exit status of a worker that should run")
        for step in (thousand_tasks, workflow, eta, retries, lost_process, autoscale, remote_control, revoke):
            started = time.monotonic()
            step(events)
            print("ok %s %.1f s" % (step.__name__, time.monotonic() - started), flush=True)
        expect(events.count("worker-heartbeat") > 0, True, "heartbeats in the events")
        tasks.app.control.shutdown()
        expect(worker.wait(WAIT_SECONDS), 0, "exit status of the worker")
    finally:
        worker.kill()
    wait_until(lambda: events.count("worker-offline"), "the worker is offline")


main()
