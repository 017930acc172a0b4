// SPDX-License-Identifier: Apache-2.0
// Plays the gateway for the plugin: loads it from a folder, and calls its hooks as lines on stdin say.
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const hooks = new Map();
const { default: plugin } = await import(pathToFileURL(`${process.argv[2]}/plugin/index.js`).href);
plugin.register({
  registrationMode: "full",
  on: (name, handler) => hooks.set(name, handler),
});
for await (const text of createInterface({ input: process.stdin })) {
  const { hook, event, ctx } = JSON.parse(text);
  const start = performance.now();
  const result = await hooks.get(hook)(event, ctx);
  console.log(JSON.stringify({ result: result ?? null, ms: performance.now() - start }));
}
process.exit(0);
