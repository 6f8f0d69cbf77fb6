// Keeps a Node alive: reads pieces of code, runs each as the REPL would, and says when it is done.
// What code prints goes out as it is; an answer stands after a mark that only this file and the server know.
'use strict';
const fs = require('node:fs');
const readline = require('node:readline');
const util = require('node:util');
const vm = require('node:vm');
const { PassThrough, Writable } = require('node:stream');

const MOST_SHOWN = 20000;
let mark = null;
let interrupt = null;
let outcome = {};

// The REPL takes a thrown null for no error at all, so what came of the code is seen here, where the REPL has it run.
// It keeps the way to run code for itself when it is loaded; everybody else has the genuine one.
const genuine = vm.Script.prototype.runInThisContext;
vm.Script.prototype.runInThisContext = function observed(...options) {
  outcome = {};
  try {
    const value = genuine.apply(this, options);
    if (util.types.isPromise(value)) outcome.promise = value;
    return value;
  } catch (error) {
    outcome.thrown = [error];
    throw error;
  }
};
const repl = require('node:repl');
vm.Script.prototype.runInThisContext = genuine;

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
    outcome = {};
    process.off('SIGINT', onSignal); // while code runs the REPL watches for the signal; two watchers lose it
    try {
      console_.eval(code + '\n', console_.context, 'code', (error, value) => {
        const cause = error instanceof repl.Recoverable ? error.err : error;
        if (cause && cause.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED') return interrupt();
        if (cause || outcome.thrown) return resolve(failed(cause));
        if (value !== undefined || !outcome.promise) return resolve({ value: shown(value) });
        outcome.promise.then(() => resolve({ value: null }), (reason) => resolve(failed(reason))); // it has been awaited
      });
    } catch (error) {
      resolve({ error: String(error) });
    } finally {
      process.on('SIGINT', onSignal);
    }
  });
}

function failed(cause) {
  write(2, `${trace(cause)}\n`);
  const said = cause && cause.message ? `${cause.name}: ${cause.message}` : `Uncaught ${util.inspect(cause)}`;
  return { error: said.slice(0, MOST_SHOWN) };
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
