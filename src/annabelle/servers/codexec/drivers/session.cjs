// Keeps a Node alive: reads pieces of code, runs each as the REPL would, and says when it is done.
// What code prints goes out as it is; an answer stands after a mark that only this file and the server know.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');
const repl = require('node:repl');
const util = require('node:util');
const { PassThrough, Writable } = require('node:stream');

const MOST_SHOWN = 20000;
let mark = null;
let interrupt = null;

process.on('uncaughtException', (error) => {
  fs.writeSync(2, `Uncaught ${util.inspect(error)}\n`); // a timer that fails does not end the session
});
function onSignal() {
  if (interrupt) interrupt();
}
process.on('SIGINT', onSignal);

const silent = new Writable({ write(chunk, encoding, done) { done(); } });
const console_ = repl.start({
  input: new PassThrough(), output: silent, terminal: false, useGlobal: true, prompt: '', breakEvalOnSigint: true,
});
// The REPL would swallow errors into its own domain; without one they come back as the result they are.
console_._domain.enter = () => {};
console_._domain.exit = () => {};

function say(answer) {
  write(2, `${mark}\n`);
  write(1, `${mark}${JSON.stringify(answer)}\n`);
}

function write(descriptor, text) {
  let data = Buffer.from(text);
  while (data.length) {
    try {
      data = data.subarray(fs.writeSync(descriptor, data));
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}

function shown(value) {
  if (value === undefined) return null;
  return util.inspect(value, { depth: 4, maxArrayLength: 200, maxStringLength: MOST_SHOWN }).slice(0, MOST_SHOWN);
}

// The REPL's way to run code knows await at the top and lets a name be used by the next piece.
function run(code) {
  return new Promise((resolve) => {
    interrupt = () => resolve({ error: 'interrupted', interrupted: true });
    process.off('SIGINT', onSignal); // while code runs the REPL watches for the signal; two watchers lose it
    try {
      console_.eval(code + '\n', console_.context, 'code', (error, value) => {
        if (!error) return resolve({ value: shown(value) });
        const cause = error instanceof repl.Recoverable ? error.err : error;
        if (cause && cause.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') return interrupt();
        write(2, `${trace(cause)}\n`);
        resolve({ error: String(cause && cause.message ? `${cause.name}: ${cause.message}` : util.inspect(cause)).slice(0, MOST_SHOWN) });
      });
    } catch (error) {
      resolve({ error: String(error) });
    } finally {
      process.on('SIGINT', onSignal);
    }
  });
}

// The stack without the steps of the REPL and of this file, which begin where the code was started.
function trace(cause) {
  if (!cause || typeof cause.stack !== 'string') return `Uncaught ${util.inspect(cause)}`;
  const lines = cause.stack.split('\n');
  const own = lines.findIndex((line) => /^ {4}at .*(node:vm|node:internal\/vm|node:repl|session\.cjs)/.test(line));
  return (own < 0 ? lines : lines.slice(0, own)).filter((line) => line.trim()).join('\n');
}

let turn = Promise.resolve();
readline.createInterface({ input: process.stdin }).on('line', (line) => {
  if (mark === null) {
    mark = `\x1e${line.trim()}`;
    say({ ready: true });
    return;
  }
  turn = turn.then(async () => {
    const answer = await run(JSON.parse(line).code);
    interrupt = null;
    say(answer);
  });
}).on('close', () => process.exit(0));
