"""Does what Symfony Messenger's AMQP transport does: symfony_run.py HOST PORT.

The transport declares its exchange and queues, and for each delay a queue whose messages expire into the exchange (or,
for a retry, into the one queue that the message came from). It declares the delay queue again with every message, which
renews its lease; it fetches with basic.get. Names and arguments are the transport's; only the delays are shorter.
"""

import sys
import time

import pika

from pika_client import connect
from runner import expect, wait_until

EXCHANGE, DELAYS, FAILED = "messages", "delays", "failed"
QUEUES = {"messages_normal": "normal", "messages_high": "high"}
DELAY_MS, MULTIPLIER, RETRIES_MAX = 100, 2, 3


class Transport:
    def __init__(self):
        self.connection = connect()
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()
        self.setup()

    def setup(self):
        """What auto_setup does, each time that a worker or a sender starts."""
        self.channel.exchange_declare(EXCHANGE, "direct", durable=True)
        self.channel.exchange_declare(DELAYS, "direct", durable=True)
        for queue, key in QUEUES.items():
            self.channel.queue_declare(queue, durable=True)
            self.channel.queue_bind(queue, EXCHANGE, key)
        self.channel.exchange_declare(FAILED, "fanout", durable=True)
        self.channel.queue_declare(FAILED, durable=True)
        self.channel.queue_bind(FAILED, FAILED)

    def send(self, exchange, key, body, headers):
        self.channel.basic_publish(exchange, key, body, mandatory=True, properties=pika.BasicProperties(
            content_type="application/json", delivery_mode=2, timestamp=int(time.time()),
            headers={"type": "App\\Message\\Job", **headers}))

    def send_delayed(self, key, body, delay, headers=None, retry=False, expires=None):
        name = "delay_%s_%s_%d_%s" % (EXCHANGE, key, delay, "retry" if retry else "delay")
        self.channel.queue_declare(name, durable=True, arguments={
            "x-message-ttl": delay,
            "x-expires": expires or delay + 10000,
            "x-dead-letter-exchange": "" if retry else EXCHANGE,
            "x-dead-letter-routing-key": key})
        self.channel.queue_bind(name, DELAYS, name)
        self.send(DELAYS, name, body, {"X-Message-Stamp-Symfony\\Component\\Messenger\\Stamp\\DelayStamp":
                                       '[{"delay":%d}]' % delay, **(headers or {})})
        return name

    def get(self, queue):
        """Polls one queue until it has a message."""
        found = []

        def poll():
            got = self.channel.basic_get(queue)
            if got[0] is not None:
                found.append(got)
            else:
                self.connection.sleep(0.005)

        wait_until(lambda: found, poll, "a message in " + queue)
        return found[0]

    def fail(self, queue, method, properties, body):
        """What the worker does when a handler throws: send again later, or give up; then settle the one it had.

        All headers go along, those that the broker wrote included.
        """
        tries = properties.headers.get("retries", 0)
        if tries < RETRIES_MAX:
            delay = DELAY_MS * MULTIPLIER ** tries
            self.send_delayed(queue, body, delay, {**properties.headers, "retries": tries + 1}, retry=True)
        else:
            self.send(FAILED, "", body, properties.headers)
        self.channel.basic_nack(method.delivery_tag, requeue=False)


def plain(transport):
    for i in range(100):
        transport.send(EXCHANGE, "high" if i % 2 else "normal", b"%d" % i, {})
    for i in range(100):
        method, _, body = transport.get("messages_high" if i % 2 else "messages_normal")
        expect(body, b"%d" % i, "message %d" % i)
        transport.channel.basic_ack(method.delivery_tag)


def delayed(transport):
    started = time.monotonic()
    for delay in (400, 200, 200):
        transport.send_delayed("normal", b"%d" % delay, delay)
    for want in (200, 200, 400):
        method, properties, body = transport.get("messages_normal")
        waited = (time.monotonic() - started) * 1000
        death = properties.headers["x-death"][0]
        expect((body, waited >= want, method.exchange, method.routing_key), (b"%d" % want, True, EXCHANGE, "normal"), "delayed")
        expect((death["reason"], death["queue"]), ("expired", "delay_messages_normal_%d_delay" % want), "x-death")
        transport.channel.basic_ack(method.delivery_tag)


def retried(transport):
    transport.send(EXCHANGE, "high", b"hopeless", {})
    started = time.monotonic()
    for tries in range(RETRIES_MAX + 1):
        method, properties, body = transport.get("messages_high")
        due = sum(DELAY_MS * MULTIPLIER ** i for i in range(tries))
        expect((body, properties.headers.get("retries", 0)), (b"hopeless", tries), "try")
        expect((time.monotonic() - started) * 1000 >= due, True, "not before %d ms" % due)
        if tries:
            # A retry goes back to the one queue by the default exchange, under the queue's name.
            expect((method.exchange, method.routing_key), ("", "messages_high"), "where the retry comes from")
        transport.fail("messages_high", method, properties, body)
    method, properties, body = transport.get(FAILED)
    expect((body, properties.headers["retries"]), (b"hopeless", RETRIES_MAX), "given up")
    expect([(death["queue"], death["count"]) for death in properties.headers["x-death"]],
           [("delay_messages_messages_high_%d_retry" % delay, 1) for delay in (400, 200, 100)], "x-death of all retries")
    transport.channel.basic_ack(method.delivery_tag)


def lease(transport):
    """Each send renews the delay queue's lease; when sending ends it goes, and takes its binding along."""
    for i in range(20):
        name = transport.send_delayed("high", b"%d" % i, 10, expires=300)
        method, _, body = transport.get("messages_high")
        expect(body, b"%d" % i, "through the delay queue")
        transport.channel.basic_ack(method.delivery_tag)
    gone = []

    def probe():
        try:
            transport.send(DELAYS, name, b"probe", {})
            transport.connection.sleep(0.02)
        except pika.exceptions.UnroutableError:
            gone.append(name)

    wait_until(lambda: gone, probe, "the delay queue expires")


def main():
    transport = Transport()
    transport.setup()
    for step in (plain, delayed, retried, lease):
        step(transport)
    for queue in QUEUES:
        transport.channel.queue_purge(queue)
    transport.connection.close()


main()
