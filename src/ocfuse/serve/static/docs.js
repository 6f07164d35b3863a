// The page on the API: what openapi.json says, to read.

import { ask } from "./connection.js";
import { byId, make, setText } from "./words.js";

let document_ = {};

// What a reference such as "#/components/schemas/Refusal" means.
function meant(part) {
  if (!part || !part.$ref) return part;
  return part.$ref.split("/").slice(1).reduce((inner, name) => inner[name], document_);
}

// A type in a word or two.
function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schema.$ref.split("/").pop();
  const several = schema.anyOf || schema.oneOf;
  if (several) return several.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(", ");
  if (schema.type === "array") return "list of " + (typeOf(schema.items) || "anything");
  return Array.isArray(schema.type) ? schema.type.join(" or ") : schema.type || "";
}

function exampleOf(content) {
  const schema = meant(content.schema) || {};
  if (content.examples) return Object.values(content.examples)[0].value;
  if (content.example !== undefined) return content.example;
  return schema.example !== undefined ? schema.example : (schema.examples || [])[0];
}

const shown = (value) => make("pre", { tabindex: 0 }, typeof value === "string" ? value : JSON.stringify(value, null, 1));

function tableOf(rows) {
  const body = make("tbody");
  for (const [name, type, words] of rows)
    body.append(make("tr", {}, make("th", { scope: "row" }, make("code", {}, name)), make("td", { class: "soft" }, type), make("td", {}, words)));
  return make("table", {}, body);
}

function fieldsOf(schema) {
  const whole = meant(schema) || {};
  return Object.entries(whole.properties || {}).map(([name, field]) => [name, typeOf(field), (field.description || (meant(field) || {}).description || "")]);
}

function contentOf(content) {
  const parts = [];
  for (const [type, one] of Object.entries(content || {})) {
    const example = exampleOf(one), fields = fieldsOf(one.schema);
    parts.push(make("p", { class: "soft small" }, type));
    if (fields.length) parts.push(tableOf(fields));
    if (example !== undefined && example !== null) parts.push(shown(example));
  }
  return parts;
}

function operation(path, verb, told) {
  const node = make("article", {},
    make("h3", {}, make("span", { class: "verb" }, verb.toUpperCase()), " ", make("code", {}, path), " – " + (told.summary || "")),
    make("p", {}, told.description || ""));
  const given = (told.parameters || []).map((one) => [one.name, typeOf(one.schema) + (one.required ? "" : ", optional"), one.description || ""]);
  if (given.length) node.append(tableOf(given));
  if (told.requestBody) node.append(fold("Request", [make("p", {}, told.requestBody.description || ""), ...contentOf(told.requestBody.content)]));
  const [good] = Object.keys(told.responses).filter((code) => code < "300"), refused = Object.entries(told.responses).filter(([code]) => code >= "300");
  if (good) node.append(fold("Answer " + good, contentOf(told.responses[good].content)));
  if (refused.length) node.append(fold("Refusals", [tableOf(refused.map(([code, answer]) => [code, "", answer.description]))]));
  return node;
}

const fold = (words, parts) => make("details", {}, make("summary", {}, words), ...parts);

async function start() {
  try {
    document_ = await (await ask("openapi.json")).json();
  } catch (error) {
    byId("failed").hidden = false;
    setText(byId("failed"), error.message + " If the service has a token, open the live page first and give it there.");
    return;
  }
  byId("about").append(make("p", {}, "Version " + document_.info.version), ...(document_.info.description || "").trim().split("\n\n").map((words) => make("p", {}, words)));
  const groups = new Map();
  for (const [path, methods] of Object.entries(document_.paths))
    for (const [verb, told] of Object.entries(methods)) {
      const name = (told.tags || ["service"])[0];
      if (!groups.has(name)) groups.set(name, []);
      groups.get(name).push(operation(path, verb, told));
    }
  for (const [name, nodes] of groups) byId("routes").append(make("h2", {}, name[0].toUpperCase() + name.slice(1)), ...nodes);
}

const kept = localStorage.getItem("ocfuse-theme");
if (kept === "light" || kept === "dark") document.documentElement.dataset.theme = kept;
start();
