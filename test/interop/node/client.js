// What the scenarios with amqplib share: names, waiting, consuming, asking the test.
'use strict';

const { randomUUID } = require('node:crypto');
const { createInterface } = require('node:readline');
const amqplib = require('amqplib');

const [host, port] = process.argv.slice(2);
const waitMS = 10000;
const exclusive = { exclusive: true };

// connect opens a connection that, and whose channels, may end in an error that nobody listens for: the call that
// waits fails, and the process must not.
async function connect() {
  const connection = await amqplib.connect({ hostname: host, port: Number(port), username: 'guest', password: 'guest', heartbeat: 30 });
  connection.on('error', () => {});
  for (const make of ['createChannel', 'createConfirmChannel']) {
    const plain = connection[make].bind(connection);
    connection[make] = async () => (await plain()).on('error', () => {});
  }
  return connection;
}

const name = (prefix) => `interop-node-${prefix}-${randomUUID()}`;

// within fails a scenario whose event never comes.
function within(promise, what) {
  let timer;
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`timed out: ${what}`)), waitMS);
  });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

// take consumes count messages.
async function take(channel, queue, count, options = { noAck: true }) {
  const got = [];
  let enough;
  const done = new Promise((resolve) => { enough = resolve; });
  const { consumerTag } = await channel.consume(queue, (message) => {
    got.push(message);
    if (got.length === count) enough();
  }, options);
  await within(done, `${count} messages from ${queue}`);
  await channel.cancel(consumerTag);
  return got;
}

const bodies = (messages) => messages.map((m) => m.content.toString());
const left = async (channel, queue) => (await channel.checkQueue(queue)).messageCount;

// collect consumes into a list whose `atLeast` waits for a number of messages.
async function collect(channel, queue, options = { noAck: true }) {
  const got = [];
  let wake = () => {};
  const { consumerTag } = await channel.consume(queue, (message) => {
    got.push(message);
    wake();
  }, options);
  const grown = async (count) => {
    while (got.length < count) await new Promise((resolve) => { wake = resolve; });
  };
  return { got, consumerTag, atLeast: (count) => within(grown(count), `${count} messages from ${queue}`) };
}

// declare makes an exclusive queue with arguments.
async function declare(channel, args) {
  return (await channel.assertQueue('', { exclusive: true, arguments: args })).queue;
}

// until repeats a check of the broker until it holds.
async function until(check, what) {
  for (const end = Date.now() + waitMS; !await check();) {
    if (Date.now() > end) throw new Error(`timed out: ${what}`);
  }
}

const answers = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

// ask has the test do something to the broker, and returns when it is done.
async function ask(what) {
  console.log(`ask ${what}`);
  await answers.next();
}

module.exports = { name, within, take, bodies, left, collect, declare, until, ask, connect, exclusive };
