// The connection: it comes back by itself, and asks for all that it has missed.

const SILENCE = 6000;  // milliseconds; the service says something every two seconds
const FIRST_WAIT = 250, LONGEST_WAIT = 4000;
const REFUSED = 4400, UNKNOWN_TOKEN = 4401;
const TOKEN = "ocfuse-token";

export const token = () => sessionStorage.getItem(TOKEN);
export const setToken = (value) => sessionStorage.setItem(TOKEN, value);

// As `fetch`, below the address of the page and with the token; throws what people may read.
export async function ask(path, options = {}) {
  const headers = { ...options.headers };
  if (token()) headers.Authorization = "Bearer " + token();
  let answer;
  try {
    answer = await fetch(new URL(path, document.baseURI), { ...options, headers, cache: "no-store" });
  } catch {
    throw new Error("The service cannot be reached. Try again when the page is live.");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => null);
  throw new Error(said && said.error ? said.error.message : "The service answered " + answer.status + ".");
}

export const post = async (path, content) => (await ask(path, {
  method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(content),
})).json();

export class Connection {
  // `hello` returns what the page knows; `take` gets messages; `show` gets live, reconnecting or stopped.
  constructor({ hello, take, show, needToken }) {
    Object.assign(this, { hello, take, show, needToken });
    this.wait = FIRST_WAIT;
    this.timer = this.watchdog = 0;
    addEventListener("online", () => this.hurry());
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.hurry(); });
  }

  open() {
    clearTimeout(this.timer);
    this.timer = 0;
    const address = new URL("v1/live", document.baseURI);
    address.protocol = address.protocol.replace("http", "ws");
    const socket = this.socket = new WebSocket(address);
    socket.addEventListener("open", () => {
      socket.send(JSON.stringify({ type: "hello", token: token(), ...this.hello() }));
    });
    socket.addEventListener("message", (event) => {
      if (socket !== this.socket) return;
      this.watch();
      const message = JSON.parse(event.data);
      if (message.type === "welcome") { this.wait = FIRST_WAIT; this.show("live"); }
      this.take(message);
    });
    socket.addEventListener("close", (event) => { if (socket === this.socket) this.lost(event.code); });
    this.watch();
  }

  send(message) {
    if (this.socket.readyState === WebSocket.OPEN) this.socket.send(JSON.stringify(message));
  }

  // A connection that says nothing is dead, even if nobody has told us.
  watch() {
    clearTimeout(this.watchdog);
    this.watchdog = setTimeout(() => {
      const socket = this.socket;
      this.lost(0);
      socket.close();
    }, SILENCE);
  }

  lost(code) {
    clearTimeout(this.watchdog);
    this.socket = { readyState: WebSocket.CLOSED };
    if (code === UNKNOWN_TOKEN || code === REFUSED) {
      this.show("stopped");
      if (code === UNKNOWN_TOKEN) this.needToken();
      return;
    }
    this.show("reconnecting");
    this.timer = setTimeout(() => this.open(), this.wait * (0.75 + 0.5 * Math.random()));
    this.wait = Math.min(2 * this.wait, LONGEST_WAIT);
  }

  hurry() {
    if (!this.timer) return;
    this.wait = FIRST_WAIT;
    this.open();
  }
}
