/* Search from a folder: browsers start no worker from file://, so that a hidden frame runs its script
 * instead. mkdocs-material's plugin "offline" would fetch such a stand-in from the network. */
(function () {
  if (location.protocol !== "file:") return

  class FrameWorker extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      this.ready = new Promise((resolve) => this.frame.addEventListener("load", resolve))
      this.listener = (event) => {
        if (event.source !== this.frame.contentWindow) return
        const passed = new MessageEvent("message", { data: event.data })
        this.dispatchEvent(passed)
        if (this.onmessage) this.onmessage(passed)
      }
      window.addEventListener("message", this.listener)
      // The script posts to its page, and loads further scripts one after the other.
      this.frame.srcdoc = `<base href="${new URL(url, location.href)}"><script>
        receive = postMessage.bind(window)
        postMessage = (data) => parent.postMessage(data, "*")
        importScripts = (...urls) => urls.reduce((before, url) => before.then(() =>
          new Promise((resolve) => {
            const script = document.createElement("script")
            script.src = url
            script.onload = resolve
            document.body.appendChild(script)
          })), Promise.resolve())
      <\/script><body><script src="${new URL(url, location.href)}"><\/script></body>`
      document.documentElement.appendChild(this.frame)
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.receive(data, "*"))
    }

    terminate() {
      window.removeEventListener("message", this.listener)
      this.frame.remove()
    }
  }

  window.Worker = FrameWorker
})()
