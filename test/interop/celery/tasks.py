"""The tasks of the Celery application under test. The broker's address comes from the environment."""

import os
import time

from celery import Celery
from kombu import Queue

app = Celery("interop", broker=os.environ["INTEROP_BROKER"], backend="rpc://")
app.conf.update(
    task_default_queue="interop", worker_send_task_events=True, task_send_sent_event=True, task_track_started=True,
    worker_prefetch_multiplier=2, broker_connection_retry_on_startup=True, broker_connection_timeout=10,
    task_queues=[Queue("interop", durable=True, max_priority=10)], worker_hijack_root_logger=False)
RETRY_SECONDS = 0.1
if os.environ.get("INTEROP_QUEUE_TYPE") == "quorum":
    RETRY_SECONDS = 1  # that delivery counts in whole seconds
    # What Celery's manual says for quorum queues; tasks with an ETA then wait in its delayed delivery exchanges.
    app.conf.update(
        task_queues=None, task_default_queue="interop-quorum", task_default_queue_type="quorum",
        task_default_exchange="interop-quorum", task_default_exchange_type="topic", worker_detect_quorum_queues=True,
        broker_transport_options={"confirm_publish": True})


@app.task
def add(x, y):
    return x + y


@app.task
def now():
    return time.time()


@app.task
def slow(seconds):
    time.sleep(seconds)
    return seconds


@app.task(bind=True)
def endless(self):
    """Says that it is there, and stays until it is told to go."""
    self.send_event("task-there")
    time.sleep(600)


@app.task(bind=True, max_retries=3)
def flaky(self, fail_times):
    """Fails that often, then says how many times it ran."""
    if self.request.retries < fail_times:
        raise self.retry(countdown=RETRY_SECONDS, exc=ValueError("attempt %d" % self.request.retries))
    return self.request.retries + 1


@app.task(bind=True, acks_late=True, reject_on_worker_lost=True)
def dies_once(self):
    """Kills the process that runs it; the message comes back and is carried out by another."""
    if not self.request.delivery_info.get("redelivered"):
        os._exit(1)
    return "redelivered"
