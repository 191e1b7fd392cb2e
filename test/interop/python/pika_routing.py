"""Routing beyond the four exchange types, with pika."""

import time

import pika

from pika_client import bodies, collect, left, pump, take
from runner import expect, name, wait_until


def cc_bcc(connection, channel):
    to, copy, hidden = name("to"), name("cc"), name("bcc")
    for queue in (to, copy, hidden):
        channel.queue_declare(queue, exclusive=True)
    channel.basic_publish("", to, b"x", pika.BasicProperties(headers={"CC": [copy], "BCC": [hidden], "n": 1}))
    for queue in (to, copy, hidden):
        method, properties, body = take(connection, channel, queue, 1)[0]
        expect((body, method.routing_key, properties.headers), (b"x", to, {"CC": [copy], "n": 1}), queue)


def alternate_exchange(connection, channel):
    other, exchange, queue = name("other"), name("main"), name("unrouted")
    channel.exchange_declare(other, "fanout")
    channel.exchange_declare(exchange, "direct", arguments={"alternate-exchange": other})
    channel.queue_declare(queue, exclusive=True)
    channel.queue_bind(queue, other)
    channel.confirm_delivery()
    channel.basic_publish(exchange, "nowhere", b"x", mandatory=True)
    method, _, body = take(connection, channel, queue, 1)[0]
    expect((body, method.exchange, method.routing_key), (b"x", exchange, "nowhere"), "by the alternate exchange")
    channel.exchange_delete(exchange)
    channel.exchange_delete(other)


def consistent_hash(connection, channel):
    exchange = name("hash")
    channel.exchange_declare(exchange, "x-consistent-hash")
    light, heavy = name("light"), name("heavy")
    for queue, weight in ((light, "1"), (heavy, "3")):
        channel.queue_declare(queue, exclusive=True)
        channel.queue_bind(queue, exchange, weight)
    keys = ["key-%d" % i for i in range(400)]
    for key in keys + keys:
        channel.basic_publish(exchange, key, key.encode())
    few, many = left(channel, light), left(channel, heavy)
    expect((few + many, 0 < few < many), (800, True), "shares %d and %d" % (few, many))
    got = bodies(take(connection, channel, light, few))
    expect(sorted(got), sorted(2 * list(set(got))), "both of a key's messages are in one queue")
    channel.exchange_delete(exchange)


def delayed_message(connection, channel):
    exchange, queue = name("delayed"), name("delayed")
    channel.exchange_declare(exchange, "x-delayed-message", arguments={"x-delayed-type": "direct"})
    channel.queue_declare(queue, exclusive=True)
    channel.queue_bind(queue, exchange, "k")
    started = time.monotonic()
    channel.basic_publish(exchange, "k", b"later", pika.BasicProperties(headers={"x-delay": 300}))
    channel.basic_publish(exchange, "k", b"now")
    got, _ = collect(channel, queue)
    wait_until(lambda: len(got) >= 2, pump(connection), "both messages")
    expect(bodies(got), [b"now", b"later"], "order")
    expect((got[1][1].headers["x-delay"], time.monotonic() - started >= 0.3), (-300, True), "delay")
    channel.exchange_delete(exchange)
