"""What the Python programs share: names, waiting, asking the test, and running scenarios by name."""

import sys
import time
import traceback
import uuid

WAIT_SECONDS = 10


class Absent(Exception):
    """The client's API cannot express the scenario; the text says what is missing."""


def name(prefix):
    return "interop-py-%s-%s" % (prefix, uuid.uuid4().hex)


def expect(got, want, what):
    if got != want:
        raise AssertionError("%s: got %r, want %r" % (what, got, want))


def ask(what):
    """Has the test do something to the broker, and returns when it is done."""
    print("ask", what, flush=True)
    sys.stdin.readline()


def wait_until(condition, pump, what):
    """Lets the client work by calling pump until condition holds."""
    deadline = time.monotonic() + WAIT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("timed out: " + what)
        pump()


def run(modules, connect, names):
    """Runs the named scenarios: functions of one of the modules, with dashes as underscores."""
    failed = 0
    for scenario in names:
        function = next((getattr(m, scenario.replace("-", "_")) for m in modules
                         if hasattr(m, scenario.replace("-", "_"))), None)
        try:
            if function is None:
                raise AssertionError("no such scenario here")
            connection = connect()
            function(connection, connection.channel())
            connection.close()
            print("ok", scenario, flush=True)
        except Absent as why:
            print("none %s: %s" % (scenario, why), flush=True)
        except BaseException:  # one broken scenario must not hide the next
            failed += 1
            print("FAIL", scenario, flush=True)
            traceback.print_exc(file=sys.stdout)
            sys.stdout.flush()
    sys.exit(1 if failed else 0)
