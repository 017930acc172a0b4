// SPDX-License-Identifier: Apache-2.0
// @ts-check
/**
 * The guard's plugin in an OpenClaw gateway: two gates, and what the gateway does in order.
 *
 * Every agent run and every tool call asks the guard over its socket. Without an answer that allows
 * it, nothing runs: the guard is not there, it does not answer in time, or it refuses. The digest of
 * each message is written to the socket before OpenClaw stores the message, so a crash loses neither.
 * This plugin runs in the gateway's process: it protects nothing from other code in that process.
 */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import net from "node:net";

const VERSION = 1;
// OpenClaw gives a gate 15 seconds; people should know after 5 at most.
const ANSWER_MS = 4000;
const ANSWER_LETTERS_MAX = 65536;
const TEXT_LETTERS_MAX = 200;

/** What is reported of each event: its name, and those of its fields that hold no content. */
const ACTS = {
  after_tool_call: ["toolName", "toolCallId", "runId", "durationMs"],
  agent_end: ["runId", "success", "durationMs"],
  before_reset: ["reason"],
  channel_pairing_requested: ["channel", "accountId", "senderId"],
  cron_changed: ["action", "jobId", "agentId", "status", "runId"],
  gateway_start: ["port"],
  gateway_stop: ["reason"],
  message_received: ["messageId", "senderId", "runId"],
  message_sent: ["messageId", "success", "runId"],
  session_end: ["sessionId", "reason", "messageCount"],
  session_start: ["sessionId", "resumedFrom"],
  skill_changed: ["action", "source"],
  subagent_ended: ["targetSessionKey", "outcome", "runId"],
  subagent_spawned: ["childSessionKey", "agentId", "runId"],
};

/** @param {unknown} value */
const sha256 = (value) => createHash("sha256").update(JSON.stringify(value ?? null)).digest("hex");

/** @param {unknown} value */
function text(value) {
  return value === undefined || value === null ? "" : String(value).slice(0, TEXT_LETTERS_MAX).toWellFormed();
}

/** The connection to the guard: lines of JSON, and answers by number. */
class Guard {
  /** @param {string} path */
  constructor(path) {
    this.path = path;
    /** @type {net.Socket | null} */
    this.socket = null;
    /** @type {Map<number, {resolve: (answer: any) => void, reject: (error: Error) => void}>} */
    this.waiting = new Map();
    this.last = 0;
    this.buffer = "";
  }

  connect() {
    if (this.socket !== null && !this.socket.destroyed) return this.socket;
    const socket = net.createConnection(this.path);
    this.socket = socket;
    this.buffer = "";
    socket.setEncoding("utf8");
    socket.unref();
    socket.on("data", (data) => this.read(socket, String(data)));
    socket.on("error", (error) => this.close(socket, error));
    socket.on("close", () => this.close(socket, new Error("it closed the connection")));
    socket.write(line({ kind: "hello", v: VERSION }));
    return socket;
  }

  /** @param {net.Socket} socket @param {Error} error */
  close(socket, error) {
    socket.destroy();
    if (this.socket !== socket) return;
    this.socket = null;
    for (const each of this.waiting.values()) each.reject(error);
    this.waiting.clear();
  }

  /** @param {net.Socket} socket @param {string} data */
  read(socket, data) {
    this.buffer += data;
    for (let end = this.buffer.indexOf("\n"); end >= 0; end = this.buffer.indexOf("\n")) {
      try {
        const answer = JSON.parse(this.buffer.slice(0, end));
        this.buffer = this.buffer.slice(end + 1);
        this.waiting.get(answer.id)?.resolve(answer);
        this.waiting.delete(answer.id);
      } catch (error) {
        this.close(socket, new Error("its answer cannot be read"));
        return;
      }
    }
    if (this.buffer.length > ANSWER_LETTERS_MAX) this.close(socket, new Error("its answer is too long"));
  }

  /**
   * Why something must not happen; null if the guard allows it. Never throws, whatever `make` does.
   * @param {string} kind @param {() => Record<string, unknown>} make
   * @returns {Promise<string | null>}
   */
  async ask(kind, make) {
    const id = ++this.last;
    /** @type {NodeJS.Timeout | undefined} */
    let timer;
    try {
      const answer = await new Promise((resolve, reject) => {
        timer = setTimeout(() => reject(new Error(`no answer in ${ANSWER_MS / 1000} seconds`)), ANSWER_MS);
        this.waiting.set(id, { resolve, reject });
        this.connect().write(line({ kind, v: VERSION, id, ...make() }));
      });
      if (answer.allow === true) return null;
      return `Sealpoint: ${text(answer.reason) || "the guard refused this"}`;
    } catch (error) {
      const why = /** @type {NodeJS.ErrnoException} */ (error);
      const known = why?.code === "ENOENT" || why?.code === "ECONNREFUSED" ? "it is not running" : why?.message;
      if (error instanceof RangeError) return "Sealpoint: the guard cannot be asked: the arguments are too deep or long.";
      return `Sealpoint: the guard does not answer (${text(known)}). Nothing runs until it does.`;
    } finally {
      clearTimeout(timer);
      this.waiting.delete(id);
    }
  }

  /** Report something; the guard does not answer. @param {string} kind @param {() => Record<string, unknown>} make */
  report(kind, make) {
    try {
      this.connect().write(line({ kind, v: VERSION, ...make() }));
    } catch {
      // What is not reported is unsealed after a crash. The next gate refuses if the guard is not there.
    }
  }
}

/** @param {Record<string, unknown>} message */
const line = (message) => `${JSON.stringify(message)}\n`;

function socketPath() {
  const settings = JSON.parse(readFileSync(new URL("guard.json", import.meta.url), "utf8"));
  return String(settings.socket);
}

export default {
  id: "sealpoint-guard",
  name: "Sealpoint guard",
  description: "Asks the guard of this gateway before runs and tool calls, and reports acts to it",
  /** @param {any} api */
  register(api) {
    const guard = new Guard(socketPath());
    if (api.registrationMode === undefined || api.registrationMode === "full") guard.connect();
    api.on("before_tool_call", async (/** @type {any} */ event, /** @type {any} */ ctx) => {
      const reason = await guard.ask("tool", () => ({
        agent: text(ctx?.agentId),
        session: text(ctx?.sessionKey),
        run: text(ctx?.runId ?? event.runId),
        call: text(event.toolCallId),
        tool: text(event.toolName),
        digest: sha256(event.params),
        files: (event.derivedPaths ?? [event.params?.path]).slice(0, 16).map(text).filter(Boolean),
      }));
      return reason === null ? undefined : { block: true, blockReason: reason };
    }, { priority: 1000000 });
    api.on("before_agent_run", async (/** @type {any} */ event, /** @type {any} */ ctx) => {
      const reason = await guard.ask("run", () => ({
        agent: text(ctx?.agentId),
        session: text(ctx?.sessionKey),
        run: text(ctx?.runId),
        trigger: text(ctx?.trigger),
        digest: sha256(event.prompt),
      }));
      return reason === null ? { outcome: "pass" } : { outcome: "block", reason, message: reason };
    }, { priority: 1000000 });
    // Last of all, so that it sees the message as it is stored; synchronous, so that the digest is
    // in the kernel's buffer before the message is in the database.
    api.on("before_message_write", (/** @type {any} */ event, /** @type {any} */ ctx) => {
      guard.report("message", () => ({
        agent: text(event.agentId ?? ctx?.agentId),
        session: text(event.sessionKey ?? ctx?.sessionKey),
        role: text(event.message?.role),
        digest: sha256(event.message),
      }));
    }, { priority: -1000000 });
    for (const [name, fields] of Object.entries(ACTS)) {
      api.on(name, (/** @type {any} */ event, /** @type {any} */ ctx) => {
        guard.report("act", () => ({
          agent: text(ctx?.agentId),
          session: text(event?.sessionKey ?? ctx?.sessionKey),
          name,
          facts: Object.fromEntries(
            fields.map((field) => [field, text(event?.[field])]).filter(([, value]) => value !== ""),
          ),
        }));
      });
    }
  },
};
