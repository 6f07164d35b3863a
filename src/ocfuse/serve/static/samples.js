// The samples of one stream: a ring, so that hours of running take no more memory than minutes.

const CAPACITY = 36000;
const EXPLAINED = 6000;  // latest samples whose contributions are kept

export class Samples {
  constructor(capacity = CAPACITY) {
    this.capacity = capacity;
    this.columns = {};
    for (const name of ["time", "score", "threshold", "p_value", "local_p", "drift", "seq"])
      this.columns[name] = new Float64Array(capacity);
    this.flags = new Uint8Array(capacity);
    this.shares = new Array(capacity).fill(null);
    this.read = new Array(capacity).fill(null);
    this.values = new Array(capacity).fill(null);
    this.clear();
  }

  clear() {
    this.first = 0;  // number of the oldest sample, counted since the start
    this.end = 0;
    for (const kept of [this.shares, this.read, this.values]) kept.fill(null);
  }

  get length() { return this.end - this.first; }

  at(name, i) { return this.columns[name][i % this.capacity]; }
  isAnomaly(i) { return this.flags[i % this.capacity] === 1; }
  contributions(i) { return this.shares[i % this.capacity]; }
  readings(i) { return this.read[i % this.capacity]; }
  // The value of a channel, NaN where there is none.
  value(channel, i) {
    const values = this.values[i % this.capacity];
    return values && values[channel] !== null && values[channel] !== undefined ? values[channel] : NaN;
  }
  get lastTime() { return this.at("time", this.end - 1); }

  push(sample) {
    // a clock that goes back begins anew
    if (this.length && sample.time < this.lastTime) this.clear();
    const place = this.end % this.capacity;
    for (const name in this.columns) {
      const value = sample[name];
      this.columns[name][place] = value === null || value === undefined ? NaN : value;
    }
    this.flags[place] = sample.is_anomaly ? 1 : 0;
    this.shares[place] = sample.contributions || null;
    this.read[place] = sample.readings && sample.readings.length ? sample.readings : null;
    this.values[place] = sample.values || null;
    this.end += 1;
    if (this.length > this.capacity) this.first = this.end - this.capacity;
    const old = this.end - 1 - EXPLAINED;
    if (old >= this.first) this.shares[old % this.capacity] = null;
  }

  // What the service remembers takes the place of what the page had of the same time.
  merge(history) {
    if (!history.length) return;
    while (this.length && this.lastTime >= history[0].time) this.end -= 1;
    for (const sample of history) this.push(sample);
  }

  // Number of the first sample that is not before a time.
  find(time) {
    let low = this.first, high = this.end;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.at("time", middle) < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  nearest(time) {
    const i = Math.min(Math.max(this.find(time), this.first), this.end - 1);
    return i > this.first && time - this.at("time", i - 1) < this.at("time", i) - time ? i - 1 : i;
  }
}
