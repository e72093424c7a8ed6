/* Lets the search work where pages are opened from a folder: browsers start no worker from file://. The script of
   the worker runs in a hidden frame instead, with the little of a worker's interface that the theme uses. */
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      this.onmessage = null;
      const address = new URL(url, location.href);
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.documentElement.appendChild(frame);
      const inner = frame.contentWindow;
      const page = frame.contentDocument;
      inner.postMessage = (data) => {
        const event = new MessageEvent("message", { data });
        this.dispatchEvent(event);
        if (this.onmessage) this.onmessage(event);
      };
      const load = (source) =>
        new Promise((done, failed) => {
          const script = page.createElement("script");
          script.src = new URL(source, address);
          script.onload = done;
          script.onerror = failed;
          page.body.appendChild(script);
        });
      inner.importScripts = (...sources) =>
        sources.reduce((before, source) => before.then(() => load(source)), Promise.resolve());
      this.ready = load(address);
      this.frame = inner;
    }

    postMessage(data) {
      this.ready.then(() => this.frame.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.frameElement.remove();
    }
  };
}
