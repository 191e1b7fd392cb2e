"""Routing beyond the four exchange types, who gets what, and alarms, with py-amqp."""

import time

from pyamqp_client import bodies, collect, confirmed, connect, declare, left, publish, pump, take
from runner import ask, expect, name, wait_until


def consumer_priority(connection, channel):
    queue = declare(channel, "priority")
    channel.basic_qos(0, 2, False)
    low, _ = collect(channel, queue, no_ack=False)
    high, _ = collect(channel, queue, no_ack=False, arguments={"x-priority": 10})
    for i in range(3):
        publish(channel, "", queue, b"%d" % i)
    wait_until(lambda: low and len(high) >= 2, pump(connection), "three deliveries")
    expect((bodies(high), bodies(low)), ([b"0", b"1"], [b"2"]), "the higher first, the lower when it is full")


def single_active_consumer(connection, channel):
    queue = declare(channel, "single", single_active_consumer=True)
    first, tag = collect(channel, queue)
    second, _ = collect(channel, queue)
    for body in (b"1", b"2"):
        publish(channel, "", queue, body)
    wait_until(lambda: len(first) >= 2, pump(connection), "the active one gets both")
    channel.basic_cancel(tag)
    publish(channel, "", queue, b"3")
    wait_until(lambda: second, pump(connection), "the next one takes over")
    expect((bodies(first), bodies(second)), ([b"1", b"2"], [b"3"]), "one at a time")


def direct_reply_to(connection, channel):
    service = declare(channel, "service")
    replies, _ = collect(channel, "amq.rabbitmq.reply-to")
    publish(channel, "", service, b"question", reply_to="amq.rabbitmq.reply-to", correlation_id="42")
    other = connection.channel()
    request = other.basic_get(service, no_ack=True)
    expect((request.body, request.reply_to.startswith("amq.rabbitmq.reply-to.")), (b"question", True), "request")
    publish(other, "", request.reply_to, b"answer", correlation_id=request.correlation_id)
    wait_until(lambda: replies, pump(connection), "the reply")
    expect((replies[0].body, replies[0].correlation_id), (b"answer", "42"), "reply")


def connection_blocked(connection, channel):
    """The client hides the reason that the broker gives."""
    queue = name("blocked")
    channel.queue_declare(queue, auto_delete=False)
    publish(channel, "", queue, b"before")
    left(channel, queue)
    told = []
    publisher = connect(on_blocked=lambda reason: told.append("blocked"), on_unblocked=lambda: told.append("unblocked"))
    sender = publisher.channel()
    ask("alarm-on")
    publish(sender, "", queue, b"held")
    wait_until(lambda: told, pump(publisher), "connection.blocked")
    expect(told, ["blocked"], "told")
    expect(channel.basic_get(queue, no_ack=True).body, b"before", "read during the alarm")
    expect(channel.basic_get(queue), None, "nothing of the blocked connection")
    ask("alarm-off")
    wait_until(lambda: len(told) >= 2, pump(publisher), "connection.unblocked")
    expect((told[1], bodies(take(connection, channel, queue, 1))), ("unblocked", [b"held"]), "after the alarm")
    channel.queue_delete(queue)
    publisher.close()


def cc_bcc(connection, channel):
    to, copy, hidden = (declare(channel, prefix) for prefix in ("to", "cc", "bcc"))
    publish(channel, "", to, b"x", application_headers={"CC": [copy], "BCC": [hidden], "n": 1})
    for queue in (to, copy, hidden):
        got = take(connection, channel, queue, 1)[0]
        expect((got.body, got.delivery_info["routing_key"], got.headers), (b"x", to, {"CC": [copy], "n": 1}), queue)


def alternate_exchange(connection, channel):
    other, exchange, queue = name("other"), name("main"), declare(channel, "unrouted")
    channel.exchange_declare(other, "fanout", auto_delete=False)
    channel.exchange_declare(exchange, "direct", auto_delete=False, arguments={"alternate-exchange": other})
    channel.queue_bind(queue, other)
    publish(channel, exchange, "nowhere", b"x", mandatory=True)  # a return would raise
    got = take(connection, channel, queue, 1)[0]
    expect((got.body, got.delivery_info["exchange"], got.delivery_info["routing_key"]), (b"x", exchange, "nowhere"),
           "by the alternate exchange")
    channel.exchange_delete(exchange)
    channel.exchange_delete(other)


def consistent_hash(connection, channel):
    exchange = name("hash")
    channel.exchange_declare(exchange, "x-consistent-hash", auto_delete=False)
    light, heavy = declare(channel, "light"), declare(channel, "heavy")
    channel.queue_bind(light, exchange, "1")
    channel.queue_bind(heavy, exchange, "3")
    keys = ["key-%d" % i for i in range(400)]
    for key in keys + keys:
        publish(channel, exchange, key, key.encode())
    few, many = left(channel, light), left(channel, heavy)
    expect((few + many, 0 < few < many), (800, True), "shares %d and %d" % (few, many))
    got = bodies(take(connection, channel, light, few))
    expect(sorted(got), sorted(2 * list(set(got))), "both of a key's messages are in one queue")
    channel.exchange_delete(exchange)


def delayed_message(connection, channel):
    exchange, queue = name("delayed"), declare(channel, "delayed")
    channel.exchange_declare(exchange, "x-delayed-message", auto_delete=False, arguments={"x-delayed-type": "direct"})
    channel.queue_bind(queue, exchange, "k")
    started = time.monotonic()
    confirmed(channel, exchange, "k", b"later", application_headers={"x-delay": 300})
    confirmed(channel, exchange, "k", b"now")
    got = take(connection, channel, queue, 2)
    expect(bodies(got), [b"now", b"later"], "order")
    expect((got[1].headers["x-delay"], time.monotonic() - started >= 0.3), (-300, True), "delay")
    channel.exchange_delete(exchange)
