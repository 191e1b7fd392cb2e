"""Runs the interop scenarios with pika: pika_run.py HOST PORT SCENARIO..."""

import sys

import pika_core
import pika_delivery
import pika_queues
import pika_routing
from pika_client import connect
from runner import run

run([pika_core, pika_queues, pika_delivery, pika_routing], connect, sys.argv[3:])
