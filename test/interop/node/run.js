// Runs the interop scenarios with amqplib: node run.js HOST PORT SCENARIO...
'use strict';

const { connect } = require('./client');
const scenarios = { ...require('./core'), ...require('./queues'), ...require('./extensions') };

// absent are scenarios that the client's API cannot express.
const absent = { transaction: 'the client has no tx methods' };

async function main() {
  let failed = 0;
  for (const name of process.argv.slice(4)) {
    if (absent[name]) {
      console.log(`none ${name}: ${absent[name]}`);
      continue;
    }
    let connection;
    try {
      connection = await connect();
      await scenarios[name](connection);
      await connection.close();
      console.log(`ok ${name}`);
    } catch (error) { // one broken scenario must not hide the next
      failed++;
      console.log(`FAIL ${name}\n${error.stack}`);
      if (connection) connection.close().catch(() => {});
    }
  }
  process.exit(failed ? 1 : 0);
}

main();
