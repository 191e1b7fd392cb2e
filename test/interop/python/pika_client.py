"""What the scenarios with pika share."""

import sys

import pika

import runner

HOST, PORT = sys.argv[1], int(sys.argv[2])


def connect():
    return pika.BlockingConnection(pika.ConnectionParameters(
        host=HOST, port=PORT, heartbeat=30, blocked_connection_timeout=runner.WAIT_SECONDS))


def pump(connection):
    return lambda: connection.process_data_events(time_limit=0.1)


def collect(channel, queue, auto_ack=True, **more):
    """Consumes into the list that is returned first; the consumer tag comes second."""
    got = []
    tag = channel.basic_consume(queue, lambda ch, m, p, b: got.append((m, p, b)), auto_ack=auto_ack, **more)
    return got, tag


def take(connection, channel, queue, count, auto_ack=True):
    """Consumes count messages and returns them as (method, properties, body)."""
    got, tag = collect(channel, queue, auto_ack)
    runner.wait_until(lambda: len(got) >= count, pump(connection), "%d messages from %s" % (count, queue))
    channel.basic_cancel(tag)
    runner.expect(len(got), count, "messages consumed from " + queue)
    return got


def left(channel, queue):
    return channel.queue_declare(queue, passive=True).method.message_count


def bodies(got):
    return [b for _, _, b in got]
