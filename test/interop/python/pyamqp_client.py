"""What the scenarios with py-amqp share."""

import socket
import sys

import amqp

from runner import expect, name, wait_until

ADDRESS = "%s:%s" % (sys.argv[1], sys.argv[2])


def connect(**more):
    connection = amqp.Connection(ADDRESS, heartbeat=30, **more)
    connection.connect()
    return connection


def pump(connection):
    def once():
        try:
            connection.drain_events(timeout=0.1)
        except socket.timeout:
            pass
    return once


def declare(channel, prefix, **arguments):
    """Declares an exclusive queue; max_length=1 stands for x-max-length."""
    queue = name(prefix)
    channel.queue_declare(queue, exclusive=True, auto_delete=False,
                          arguments={"x-" + k.replace("_", "-"): v for k, v in arguments.items()})
    return queue


def publish(channel, exchange, key, body, mandatory=False, **properties):
    channel.basic_publish(amqp.Message(body, **properties), exchange, key, mandatory=mandatory)


def confirmed(channel, exchange, key, body, **properties):
    """Publishes and returns when the confirm came; a nack raises."""
    channel.basic_publish_confirm(amqp.Message(body, **properties), exchange, key, confirm_timeout=10)


def collect(channel, queue, no_ack=True, **more):
    """Consumes into the list that is returned first; the consumer tag comes second."""
    got = []
    tag = channel.basic_consume(queue, no_ack=no_ack, callback=got.append, **more)
    return got, tag


def take(connection, channel, queue, count, no_ack=True):
    """Consumes count messages."""
    got, tag = collect(channel, queue, no_ack)
    wait_until(lambda: len(got) >= count, pump(connection), "%d messages from %s" % (count, queue))
    channel.basic_cancel(tag)
    expect(len(got), count, "messages consumed from " + queue)
    return got


def left(channel, queue):
    return channel.queue_declare(queue, passive=True).message_count


def bodies(got):
    return [m.body for m in got]
