// SPDX-License-Identifier: Apache-2.0
// What pages need beside htmx: passkeys, the live feed, and copying. It writes text, never HTML.
"use strict";

const bytes = (text) =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0));
const text64 = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-").replace(/\//g, "_").replace(/=+$/, "");
const say = (words) => { document.getElementById("said").textContent = words; };

async function post(path, body) {
  const answer = await fetch(path, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json" },
    body: JSON.stringify(body),
  });
  const found = await answer.json().catch(() => ({}));
  if (!answer.ok) {
    const fault = found.error || { message: "The server refused it.", hint: "" };
    throw new Error([fault.message, fault.hint].filter(Boolean).join(" "));
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
  button.disabled = true;
  try {
    await work();
  } catch (error) {
    show(fault, reasonOf(error));
  } finally {
    button.disabled = false;
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

function signInByLink() {
  const place = document.querySelector("[data-link]");
  const token = new URLSearchParams(location.hash.slice(1)).get("link");
  if (!place || !token) return;
  history.replaceState(null, "", location.pathname);
  place.hidden = false;
  post(place.dataset.link, { link: token })
    .then(() => location.replace("/"))
    .catch((fault) => { show(place.querySelector("p"), fault.message); });
}

function signInByPasskey() {
  const button = document.querySelector("[data-passkey-sign-in]");
  if (!button) return;
  const fault = document.querySelector("[data-passkey-fault]");
  button.addEventListener("click", () => busy(button, fault, async () => {
    const options = await post("/sign-in/passkey/begin", {});
    const credential = await sign(options);
    await post("/sign-in/passkey", { ticket: options.ticket, ...signed(credential) });
    location.replace("/");
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
      document.querySelector("[data-fingerprint]").textContent = made.fingerprint;
      form.hidden = true;
      document.querySelector("[data-enrolled]").hidden = false;
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
        const reason = form.elements.reason.value;
        const begun = { ticket: form.elements.ticket.value, verdict: button.value, reason };
        const options = await post(`${form.action}/begin`, begun);
        const credential = await sign(options);
        const done = await post(form.action, { ticket: options.ticket, ...signed(credential) });
        location.assign(done.page);
      });
    });
  }
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

function live() {
  const path = document.body.dataset.live;
  if (!path) return;
  const source = new EventSource(path);
  const count = document.getElementById("open-requests");
  const freshness = document.getElementById("freshness");
  source.addEventListener("standing", (event) => {
    const found = JSON.parse(event.data);
    count.hidden = !found.open_requests;
    count.firstElementChild.textContent = found.open_requests;
    freshness.textContent = found.freshness;
  });
  source.addEventListener("moved", (event) => {
    const found = JSON.parse(event.data);
    document.body.dispatchEvent(new CustomEvent("store-moved", { detail: found }));
  });
  source.addEventListener("error", () => {
    freshness.textContent = "The live feed is interrupted; trying again.";
  });
  addEventListener("pagehide", () => source.close());
}

signInByLink();
signInByPasskey();
enrol();
answerByPasskey();
copying();
live();
