/* "Try it" in the API reference: sends a request to this service with the reader's key, which stays in this tab. */
(() => {
  "use strict";

  const KEY = "docsApiKey";
  // A stream never ends: its beginning is shown.
  const STREAM_MS = 10_000;
  const SHOWN_HEADERS = ["x-request-id", "ratelimit-remaining", "retry-after", "idempotent-replayed", "location"];

  const keys = document.querySelectorAll("input[name=key]");
  for (const field of keys) {
    field.value = sessionStorage.getItem(KEY) ?? "";
    field.addEventListener("input", () => {
      sessionStorage.setItem(KEY, field.value.trim());
      for (const other of keys) other.value = field.value;
    });
  }

  for (const details of document.querySelectorAll(".try")) {
    details.hidden = false;
    details.querySelector("form").addEventListener("submit", send);
  }

  async function send(event) {
    event.preventDefault();
    const form = event.target;
    const button = form.querySelector("button");
    const status = form.querySelector("[role=status]");
    button.disabled = true;
    try {
      status.replaceChildren(...await answer(form));
    } catch (error) {
      status.replaceChildren(line(`No response: ${error.message}`));
    } finally {
      button.disabled = false;
    }
  }

  async function answer(form) {
    const started = performance.now();
    const response = await fetch(url(form), options(form));
    const text = await textOf(response);
    const elapsed = Math.round(performance.now() - started);
    const headers = SHOWN_HEADERS.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
    return [line(`${response.status} in ${elapsed} ms`), line(headers.join(", ")), block(readable(text))];
  }

  async function textOf(response) {
    if (!response.headers.get("content-type")?.startsWith("text/event-stream")) return response.text();
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const timer = setTimeout(() => reader.cancel(), STREAM_MS);
    let text = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
    clearTimeout(timer);
    return text;
  }

  function url(form) {
    let path = form.dataset.path;
    const query = new URLSearchParams();
    for (const field of form.querySelectorAll("[data-in]")) {
      if (field.dataset.in === "path") path = path.replace(`{${field.name}}`, encodeURIComponent(field.value.trim()));
      if (field.dataset.in === "query" && field.value) query.set(field.name, field.value);
    }
    return query.size ? `${path}?${query}` : path;
  }

  function options(form) {
    const headers = {};
    for (const field of form.querySelectorAll("[data-in=header]")) if (field.value) headers[field.name] = field.value;
    const key = form.elements.key?.value.trim();
    if (key) headers.Authorization = `Bearer ${key}`;
    const body = form.elements.body?.value;
    if (body) headers["Content-Type"] = "application/json";
    return { method: form.dataset.method, headers, body: body || undefined, credentials: "omit" };
  }

  function readable(text) {
    try {
      return JSON.stringify(JSON.parse(text), null, 2);
    } catch {
      return text;
    }
  }

  function line(text) {
    return Object.assign(document.createElement("p"), { textContent: text });
  }

  function block(text) {
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    pre.append(Object.assign(document.createElement("code"), { textContent: text }));
    return pre;
  }
})();
