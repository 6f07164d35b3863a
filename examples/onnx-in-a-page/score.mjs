// Score rows by a model that `ocfuse export` wrote. No server is asked.

import * as ort from "./node_modules/onnxruntime-web/dist/ort.wasm.min.mjs";

ort.env.wasm.numThreads = 1; // several need headers that a plain server does not send

// Return what scores rows: `facts` is what `ocfuse export --json` has printed.
export async function openModel(model, facts) {
  const session = await ort.InferenceSession.create(model);
  return async (rows) => {
    const found = await session.run(inputsOf(facts, rows));
    return rows.map((_, i) => ({
      score: found.score.data[i],
      isAnomaly: found.label.data[i] < 0n,
      pValue: found.p_value.data[i],
      threshold: found.threshold.data[0],
    }));
  };
}

// Return the inputs of the model for rows, objects with a value for every column by its name.
// An empty text, null and undefined are gaps; a number that cannot be read is an error.
function inputsOf(facts, rows) {
  const { columns } = facts;
  if (facts.inputs.length === 1 && facts.inputs[0] === "X") {
    const cells = rows.flatMap((row) => columns.map(({ name }) => number(row[name], name)));
    return { X: new ort.Tensor("float64", Float64Array.from(cells), [rows.length, columns.length]) };
  }
  const shape = [rows.length, 1];
  return Object.fromEntries(
    columns.map(({ name, is_text }) => {
      const cells = rows.map((row) => row[name]);
      return is_text
        ? [name, new ort.Tensor("string", cells.map((cell) => `${cell ?? ""}`.trim()), shape)]
        : [name, new ort.Tensor("float64", Float64Array.from(cells, (cell) => number(cell, name)), shape)];
    }),
  );
}

function number(cell, name) {
  if (cell === null || cell === undefined || `${cell}`.trim() === "" || Number.isNaN(cell)) return NaN;
  const value = Number(cell);
  if (Number.isNaN(value)) throw new Error(`${name} must be a number, such as 1.5. Got "${cell}".`);
  return value;
}
