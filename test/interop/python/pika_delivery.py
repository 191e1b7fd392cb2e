"""Who gets what when, and what concerns a whole connection, with pika."""

import pika

from pika_client import bodies, collect, connect, left, pump
from runner import ask, expect, name, wait_until


def prefetch_global(connection, channel):
    queue = name("shared")
    channel.queue_declare(queue, exclusive=True)
    for i in range(5):
        channel.basic_publish("", queue, b"%d" % i)
    channel.basic_qos(prefetch_count=2, global_qos=True)
    one, _ = collect(channel, queue, auto_ack=False)
    two, _ = collect(channel, queue, auto_ack=False)
    wait_until(lambda: len(one) + len(two) >= 2, pump(connection), "two deliveries")
    expect((left(channel, queue), len(one) + len(two)), (3, 2), "one window for both consumers")
    channel.basic_qos(prefetch_count=3, global_qos=True)
    wait_until(lambda: len(one) + len(two) >= 3, pump(connection), "a third when the window grows")
    expect((left(channel, queue), len(one) + len(two)), (2, 3), "a window of three")
    channel.basic_qos(prefetch_count=0, global_qos=True)
    wait_until(lambda: len(one) + len(two) >= 5, pump(connection), "all without a window")


def consumer_priority(connection, channel):
    queue = name("priority")
    channel.queue_declare(queue, exclusive=True)
    channel.basic_qos(prefetch_count=2)
    low, _ = collect(channel, queue, auto_ack=False)
    high, _ = collect(channel, queue, auto_ack=False, arguments={"x-priority": 10})
    for i in range(3):
        channel.basic_publish("", queue, b"%d" % i)
    wait_until(lambda: low and len(high) >= 2, pump(connection), "three deliveries")
    expect((bodies(high), bodies(low)), ([b"0", b"1"], [b"2"]), "the higher first, the lower when it is full")


def single_active_consumer(connection, channel):
    queue = name("single")
    channel.queue_declare(queue, exclusive=True, arguments={"x-single-active-consumer": True})
    first, tag = collect(channel, queue)
    second, _ = collect(channel, queue)
    for body in (b"1", b"2"):
        channel.basic_publish("", queue, body)
    wait_until(lambda: len(first) >= 2, pump(connection), "the active one gets both")
    channel.basic_cancel(tag)
    channel.basic_publish("", queue, b"3")
    wait_until(lambda: second, pump(connection), "the next one takes over")
    expect((bodies(first), bodies(second)), ([b"1", b"2"], [b"3"]), "one at a time")


def direct_reply_to(connection, channel):
    service = name("service")
    channel.queue_declare(service, exclusive=True)
    replies, _ = collect(channel, "amq.rabbitmq.reply-to")
    channel.basic_publish("", service, b"question", pika.BasicProperties(
        reply_to="amq.rabbitmq.reply-to", correlation_id="42"))
    other = connection.channel()
    _, properties, body = other.basic_get(service, auto_ack=True)
    expect((body, properties.reply_to.startswith("amq.rabbitmq.reply-to.")), (b"question", True), "request")
    other.basic_publish("", properties.reply_to, b"answer", pika.BasicProperties(
        correlation_id=properties.correlation_id))
    wait_until(lambda: replies, pump(connection), "the reply")
    expect((replies[0][2], replies[0][1].correlation_id), (b"answer", "42"), "reply")


def connection_blocked(connection, channel):
    queue = name("blocked")
    channel.queue_declare(queue)
    channel.basic_publish("", queue, b"before")
    told = []
    connection.add_on_connection_blocked_callback(lambda c, m: told.append(m.method.reason))
    connection.add_on_connection_unblocked_callback(lambda c, m: told.append("unblocked"))
    ask("alarm-on")
    channel.basic_publish("", queue, b"held")
    wait_until(lambda: told, pump(connection), "connection.blocked")
    expect(told, ["low on disk"], "told")
    idle = connect()
    reader = idle.channel()
    expect(reader.basic_get(queue, auto_ack=True)[2], b"before", "read during the alarm")
    expect(reader.basic_get(queue)[0], None, "nothing of the blocked connection")
    ask("alarm-off")
    wait_until(lambda: len(told) >= 2, pump(connection), "connection.unblocked")
    got, _ = collect(reader, queue)
    wait_until(lambda: got, pump(idle), "what was held")
    expect((told[1], bodies(got)), ("unblocked", [b"held"]), "after the alarm")
    reader.queue_delete(queue)
    idle.close()


def update_secret(connection, channel):
    connection.update_secret("guest", "renewed")
    channel.queue_declare(name("after"), exclusive=True)


def user_id(connection, channel):
    queue = name("user")
    channel.queue_declare(queue, exclusive=True)
    channel.confirm_delivery()
    channel.basic_publish("", queue, b"mine", pika.BasicProperties(user_id="guest"))
    try:
        channel.basic_publish("", queue, b"his", pika.BasicProperties(user_id="bob"))
        raise AssertionError("another's user id was taken")
    except pika.exceptions.ChannelClosedByBroker as closed:
        expect((closed.reply_code, "user_id property set to 'bob'" in closed.reply_text), (406, True), "reply")
    expect(left(connection.channel(), queue), 1, "published")
