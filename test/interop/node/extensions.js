// Routing beyond the four exchange types, who gets what, and alarms, with amqplib.
'use strict';

const assert = require('node:assert');
const { once } = require('node:events');
const { name, within, take, bodies, left, collect, declare, until, ask, connect } = require('./client');

const send = (channel, queue, body, options) => channel.sendToQueue(queue, Buffer.from(body), options);

async function consumerPriority(connection) {
  const channel = await connection.createChannel();
  const queue = await declare(channel);
  await channel.prefetch(2);
  const low = await collect(channel, queue, {});
  const high = await collect(channel, queue, { priority: 10 });
  for (const body of ['0', '1', '2']) send(channel, queue, body);
  await high.atLeast(2);
  await low.atLeast(1);
  assert.deepStrictEqual([bodies(high.got), bodies(low.got)], [['0', '1'], ['2']]);
}

async function singleActiveConsumer(connection) {
  const channel = await connection.createChannel();
  const queue = await declare(channel, { 'x-single-active-consumer': true });
  const first = await collect(channel, queue);
  const second = await collect(channel, queue);
  for (const body of ['1', '2']) send(channel, queue, body);
  await first.atLeast(2);
  await channel.cancel(first.consumerTag);
  send(channel, queue, '3');
  await second.atLeast(1);
  assert.deepStrictEqual([bodies(first.got), bodies(second.got)], [['1', '2'], ['3']]);
}

async function directReplyTo(connection) {
  const channel = await connection.createChannel();
  const service = await declare(channel);
  const replies = await collect(channel, 'amq.rabbitmq.reply-to');
  send(channel, service, 'question', { replyTo: 'amq.rabbitmq.reply-to', correlationId: '42' });
  const other = await connection.createChannel();
  let request;
  await until(async () => (request = await other.get(service, { noAck: true })), 'the request');
  const { replyTo, correlationId } = request.properties;
  assert.match(replyTo, /^amq\.rabbitmq\.reply-to\./);
  send(other, replyTo, 'answer', { correlationId });
  await replies.atLeast(1);
  assert.deepStrictEqual([bodies(replies.got), replies.got[0].properties.correlationId], [['answer'], '42']);
}

async function connectionBlocked(connection) {
  const channel = await connection.createChannel();
  const { queue } = await channel.assertQueue(name('blocked'));
  send(channel, queue, 'before');
  assert.strictEqual(await left(channel, queue), 1);
  const publisher = await connect();
  const sender = await publisher.createChannel();
  const blocked = once(publisher, 'blocked');
  const unblocked = once(publisher, 'unblocked');
  await ask('alarm-on');
  send(sender, queue, 'held');
  assert.deepStrictEqual(await within(blocked, 'connection.blocked'), ['low on disk']);
  assert.strictEqual((await channel.get(queue, { noAck: true })).content.toString(), 'before');
  assert.strictEqual(await channel.get(queue), false);
  await ask('alarm-off');
  await within(unblocked, 'connection.unblocked');
  assert.deepStrictEqual(bodies(await take(channel, queue, 1)), ['held']);
  await channel.deleteQueue(queue);
  await publisher.close();
}

async function ccBCC(connection) {
  const channel = await connection.createChannel();
  const [to, copy, hidden] = [await declare(channel), await declare(channel), await declare(channel)];
  // Options of the client of the same names; headers would do as well.
  send(channel, to, 'x', { CC: copy, BCC: [hidden], headers: { n: 1 } });
  for (const queue of [to, copy, hidden]) {
    const [{ content, fields, properties }] = await take(channel, queue, 1);
    assert.deepStrictEqual([content.toString(), fields.routingKey, { ...properties.headers }], ['x', to, { n: 1, CC: [copy] }]);
  }
}

async function alternateExchange(connection) {
  const channel = await connection.createChannel();
  const { exchange: other } = await channel.assertExchange(name('other'), 'fanout');
  const { exchange } = await channel.assertExchange(name('main'), 'direct', { alternateExchange: other });
  const queue = await declare(channel);
  await channel.bindQueue(queue, other, '');
  channel.on('return', () => assert.fail('a message that the alternate exchange took was returned'));
  channel.publish(exchange, 'nowhere', Buffer.from('x'), { mandatory: true });
  const [{ content, fields }] = await take(channel, queue, 1);
  assert.deepStrictEqual([content.toString(), fields.exchange, fields.routingKey], ['x', exchange, 'nowhere']);
  await channel.deleteExchange(exchange);
  await channel.deleteExchange(other);
}

async function consistentHash(connection) {
  const channel = await connection.createChannel();
  const { exchange } = await channel.assertExchange(name('hash'), 'x-consistent-hash');
  const [light, heavy] = [await declare(channel), await declare(channel)];
  await channel.bindQueue(light, exchange, '1');
  await channel.bindQueue(heavy, exchange, '3');
  for (let i = 0; i < 800; i++) channel.publish(exchange, `key-${i % 400}`, Buffer.from(`key-${i % 400}`));
  const [few, many] = [await left(channel, light), await left(channel, heavy)];
  assert.strictEqual(few + many, 800);
  assert.ok(few > 0 && few < many, `shares ${few} and ${many}`);
  const got = bodies(await take(channel, light, few));
  assert.strictEqual(new Set(got).size * 2, few, 'both of a key\'s messages are in one queue');
  await channel.deleteExchange(exchange);
}

async function delayedMessage(connection) {
  const channel = await connection.createChannel();
  const { exchange } = await channel.assertExchange(name('delayed'), 'x-delayed-message', { arguments: { 'x-delayed-type': 'direct' } });
  const queue = await declare(channel);
  await channel.bindQueue(queue, exchange, 'k');
  const started = process.hrtime.bigint();
  channel.publish(exchange, 'k', Buffer.from('later'), { headers: { 'x-delay': 300 } });
  channel.publish(exchange, 'k', Buffer.from('now'));
  const got = await take(channel, queue, 2);
  assert.deepStrictEqual([bodies(got), got[1].properties.headers['x-delay']], [['now', 'later'], -300]);
  assert.ok(process.hrtime.bigint() - started >= 300_000_000n, 'too early');
  await channel.deleteExchange(exchange);
}

module.exports = {
  'consumer-priority': consumerPriority, 'single-active-consumer': singleActiveConsumer, 'direct-reply-to': directReplyTo,
  'connection-blocked': connectionBlocked, 'cc-bcc': ccBCC, 'alternate-exchange': alternateExchange,
  'consistent-hash': consistentHash, 'delayed-message': delayedMessage,
};
