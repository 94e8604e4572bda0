// Browsers start no workers for pages that are opened from the disk, and the search runs in one.
// There, the same script runs in a hidden frame instead; nothing is fetched from anywhere else.
if (location.protocol === "file:") {
  window.Worker = class {
    constructor(url) {
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentWindow;
      inside.postMessage = (data) => this.tell(() => this.onmessage, data);
      const script = inside.document.createElement("script");
      this.ready = new Promise((done) => (script.onload = done));
      script.onerror = (event) => this.onerror && this.onerror(event);
      script.src = new URL(url, location.href).href;
      inside.document.body.append(script);
    }
    postMessage(data) {
      this.tell(() => this.frame.contentWindow?.onmessage, data);
    }
    // A message is a copy of what it was when it was sent, and comes later: so it is with a worker.
    tell(listener, data) {
      const copy = structuredClone(data);
      this.ready.then(() => setTimeout(() => listener()?.({ data: copy })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
