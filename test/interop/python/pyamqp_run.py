"""Runs the interop scenarios with py-amqp: pyamqp_run.py HOST PORT SCENARIO..."""

import sys

import pyamqp_core
import pyamqp_extensions
import pyamqp_queues
from pyamqp_client import connect
from runner import run

run([pyamqp_core, pyamqp_extensions, pyamqp_queues], connect, sys.argv[3:])
