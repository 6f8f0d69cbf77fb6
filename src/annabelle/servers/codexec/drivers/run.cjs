// Runs a script whether it is written with require or with import and await: Node wants to know, models do not say.
'use strict';
const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');
const Module = require('node:module');
const { pathToFileURL } = require('node:url');

const file = path.join(__dirname, 'main.mjs');
const source = fs.readFileSync(file, 'utf8').replace(/^#!.*/, '');
process.argv.splice(1, 1, file);

function isPlain() {
  try {
    new vm.Script(Module.wrap(source), { filename: file });
    return true;
  } catch {
    return false; // written as a module, or wrong in both: the import below says where
  }
}

globalThis.require = Module.createRequire(path.join(process.cwd(), 'main.js'));
if (isPlain()) {
  const main = new Module(file, null);
  main.filename = file;
  main.paths = Module._nodeModulePaths(process.cwd());
  main._compile(source, file);
} else {
  import(pathToFileURL(file)); // left to fail by itself: Node then shows the line
}
