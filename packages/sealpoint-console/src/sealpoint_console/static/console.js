// SPDX-License-Identifier: Apache-2.0
// What pages need beside htmx: passkeys, the live feed, and copying. It writes text, never HTML.
"use strict";

const bytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const text64 = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const say = (words) => { document.getElementById("said").textContent = words; };

// What a proxy says when the console is down is no word of the console.
const noAnswer = (why) =>
  new Error(`The console does not answer (${why}). Load the page again, and look whether it was done.`);

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  }).catch(() => { throw noAnswer("no connection"); });
  const found = await answer.json().catch(() => { throw noAnswer(answer.status); });
  if (!answer.ok) {
    const fault = found.error;
    if (!fault) throw noAnswer(answer.status);
    throw new Error([fault.message, fault.hint].filter(Boolean).join(". "));
  }
  return found;
}

function reasonOf(fault) {
  if (fault.name === "NotAllowedError") {
    return "The passkey was not used: it was cancelled, took too long, or is not on this device.";
  }
  if (fault.name === "InvalidStateError") return "This device has that passkey already.";
  return fault.message;
}

function show(element, words) {
  if (!element) return;
  element.textContent = words;
  element.hidden = false;
  say(words);
}

// Runs what a button is for; while it runs, the button cannot be pressed again.
async function busy(button, fault, work) {
  if (fault) fault.hidden = true;
  const isFocused = document.activeElement === button;
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    show(fault, reasonOf(error));
  } finally {
    button.disabled = false;
    // A button that cannot be pressed loses the focus, and whoever has no pointer their place.
    if (isFocused && document.activeElement === document.body) button.focus();
  }
}

const sign = (options) =>
  navigator.credentials.get({
    publicKey: {
      challenge: bytes(options.challenge),
      rpId: options.site,
      allowCredentials: options.credentials.map((id) => ({ type: "public-key", id: bytes(id) })),
      userVerification: "required",
      timeout: 120000,
    },
  });

const signed = (credential) => ({
  credential: credential.id,
  client_data: text64(credential.response.clientDataJSON),
  authenticator_data: text64(credential.response.authenticatorData),
  signature: text64(credential.response.signature),
});

// Where somebody was going when they were asked to sign in; the server has checked it.
const wanted = () => document.querySelector("[data-wanted]").dataset.wanted;

function signInByLink() {
  const place = document.querySelector("[data-link]");
  const token = new URLSearchParams(location.hash.slice(1)).get("link");
  if (!place || !token) return;
  history.replaceState(null, "", location.pathname);
  const [words, button, fault] = ["words", "sign-in", "fault"]
    .map((name) => place.querySelector(`[data-link-${name}]`));
  place.hidden = false;
  for (const other of document.querySelectorAll("[data-no-link]")) other.hidden = true;
  // A link says who one would be, and a person decides: it may come from anybody.
  busy(button, fault, async () => {
    const { person } = await post("/sign-in/link/person", { link: token });
    words.textContent = `It signs you in as ${person}.`;
    button.textContent = `Sign in as ${person}`;
    button.hidden = false;
  }).then(() => {
    if (!button.hidden) { button.focus(); return; }
    words.hidden = true;
    for (const other of document.querySelectorAll("[data-no-link]")) other.hidden = false;
  });
  button.addEventListener("click", () => busy(button, fault, async () => {
    await post("/sign-in/link", { link: token });
    location.replace(wanted());
  }));
}

function signInByPasskey() {
  const button = document.querySelector("[data-passkey-sign-in]");
  if (!button) return;
  const fault = document.querySelector("[data-passkey-fault]");
  button.addEventListener("click", () => busy(button, fault, async () => {
    const options = await post("/sign-in/passkey/begin", {});
    const credential = await sign(options);
    await post("/sign-in/passkey", { ticket: options.ticket, ...signed(credential) });
    location.replace(wanted());
  }));
}

function enrol() {
  const form = document.querySelector("form[data-enrol]");
  if (!form) return;
  const fault = document.querySelector("[data-passkey-fault]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    busy(form.querySelector("button"), fault, async () => {
      const name = form.elements.name.value;
      const options = await post("/enrol/begin", { name });
      const credential = await navigator.credentials.create({
        publicKey: {
          challenge: bytes(options.challenge),
          rp: { id: options.site, name: "Sealpoint" },
          user: { id: bytes(options.user), name, displayName: name },
          pubKeyCredParams: options.algorithms.map((alg) => ({ type: "public-key", alg })),
          authenticatorSelection: { residentKey: "preferred", userVerification: "required" },
          attestation: "none",
          timeout: 120000,
        },
      });
      const made = await post("/enrol", {
        ticket: options.ticket,
        name,
        client_data: text64(credential.response.clientDataJSON),
        authenticator_data: text64(credential.response.getAuthenticatorData()),
      });
      document.querySelector("[data-enrolment]").textContent = made.enrolment;
      document.querySelector("[data-command]").textContent = made.command;
      document.querySelector("[data-instead]").textContent = made.instead;
      document.querySelector("[data-fingerprint]").textContent = made.fingerprint;
      form.hidden = true;
      const enrolled = document.querySelector("[data-enrolled]");
      enrolled.hidden = false;
      enrolled.querySelector("h2").focus();
      say("The passkey was made. Send the text to whoever holds the root key.");
    });
  });
}

function answerByPasskey() {
  for (const form of document.querySelectorAll("form[data-answer]")) {
    const fault = form.querySelector("[data-passkey-fault]");
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const button = event.submitter || form.querySelector("button");
      busy(button, fault, async () => {
        const begun = { ...Object.fromEntries(new FormData(form)), verdict: button.value };
        const options = await post(`${form.action}/begin`, begun);
        const credential = await sign(options);
        const done = await post(form.action, { ticket: options.ticket, ...signed(credential) });
        location.assign(done.page);
      });
    });
  }
}

// Approve waits until the end of the question, the calls, the answer and what differs was on the
// screen. That protects against haste; the server judges what is signed.
function readFirst() {
  const button = document.querySelector("[data-after-reading]");
  const words = document.querySelector("[data-left]");
  if (!button || !words) return;
  const left = new Set(document.querySelectorAll("[data-end]"));
  const tell = () => {
    button.disabled = left.size > 0;
    words.hidden = !left.size;
    const links = [...left].map((each) => {
      const link = document.createElement("a");
      link.href = `#${each.dataset.place}`;
      link.textContent = each.dataset.end;
      return link;
    });
    words.replaceChildren("Left to see: ", ...links.flatMap((link, n) => (n ? [", ", link] : [link])), ".");
  };
  const watch = new IntersectionObserver((seen) => {
    const before = left.size;
    for (const each of seen) if (each.isIntersecting) { left.delete(each.target); watch.unobserve(each.target); }
    if (left.size !== before) tell();
  });
  for (const each of left) watch.observe(each);
  tell();
}

function copying() {
  document.addEventListener("click", (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button) return;
    const place = document.getElementById(button.dataset.copy);
    navigator.clipboard.writeText(place.textContent).then(
      () => say("Copied."),
      () => { getSelection().selectAllChildren(place); say("Selected: copy it with the keyboard."); },
    );
  });
}

const LATE_MS = 5000;

function live() {
  const path = document.body.dataset.live;
  if (!path) return;
  const count = document.getElementById("open-requests");
  const alarms = document.getElementById("alarms");
  const freshness = document.getElementById("freshness");
  const tell = (name) => document.body.dispatchEvent(new CustomEvent(name));
  let place = document.body.dataset.place;
  const stale = document.getElementById("stale");
  let source = null;
  let late = 0;
  // A list that stands still looks like a list in which nothing happens.
  const stopsFollowing = (words) => {
    stale.lastElementChild.textContent = words;
    stale.hidden = false;
  };
  const follows = () => { clearTimeout(late); late = 0; stale.hidden = true; };
  const listen = () => {
    source = new EventSource(`${path}?since=${encodeURIComponent(place)}`);
    source.addEventListener("standing", (event) => {
      const found = JSON.parse(event.data);
      for (const [place, number] of [[count, found.open_requests], [alarms, found.alarms]]) {
        place.hidden = !number;
        place.firstElementChild.textContent = number;
      }
      freshness.textContent = found.freshness;
      follows();
    });
    source.addEventListener("moved", (event) => {
      place = event.lastEventId;
      const { threads } = JSON.parse(event.data);
      const shown = document.querySelector("[data-thread]");
      tell("store-moved");
      if (shown && (!threads || threads.includes(shown.dataset.thread))) tell("thread-moved");
    });
    source.addEventListener("fault", (event) => {
      freshness.textContent = JSON.parse(event.data).freshness;
      stopsFollowing("The console cannot read the store; the page goes on by itself when it can.");
    });
    source.addEventListener("error", () => {
      const isClosed = source && source.readyState === EventSource.CLOSED;
      freshness.textContent = "The live feed is interrupted.";
      if (isClosed) stopsFollowing("Load the page again; you may have to sign in.");
      else if (!late) late = setTimeout(stopsFollowing, LATE_MS, "The console does not answer; the page tries again by itself.");
    });
  };
  const stop = () => { clearTimeout(late); late = 0; if (source) source.close(); source = null; };
  // A browser has six connections to a server: tabs that nobody sees must not take them all.
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) stop();
    else if (!source) listen();
  });
  addEventListener("pagehide", stop);
  addEventListener("pageshow", (event) => { if (event.persisted && !source) listen(); });
  if (!document.hidden) listen();
}

// What a person has chosen stays chosen though the list is renewed, and what is new is marked.
function keepChoices() {
  const list = document.querySelector("[data-thread]");
  if (!list) return;
  const chosen = new Map();
  let known = new Set();
  const entries = () => [...document.querySelectorAll("[data-thread] li[id]")];
  document.addEventListener("change", (event) => {
    if (event.target.matches("[data-thread] input[type=radio]")) {
      chosen.set(event.target.name, event.target.value);
    }
  });
  document.addEventListener("htmx:before:swap", () => {
    known = new Set(entries().map((each) => each.id));
  });
  document.addEventListener("htmx:after:swap", () => {
    for (const radio of document.querySelectorAll("[data-thread] input[type=radio]")) {
      const value = chosen.get(radio.name);
      if (value === undefined ? radio.defaultChecked : radio.value === value) radio.checked = true;
    }
    for (const each of entries()) if (!known.has(each.id)) each.classList.add("fresh");
  });
}

// What was done, or why not, is where somebody goes on from.
function goOn() {
  const place = document.querySelector("[data-focus]");
  if (place) place.focus();
}

goOn();
signInByLink();
signInByPasskey();
enrol();
answerByPasskey();
readFirst();
copying();
keepChoices();
live();
