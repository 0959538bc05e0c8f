import { defineConfig } from "vitest/config";

export default defineConfig({
  build: {
    // Into the Python package, whose wheel carries the page.
    outDir: "../src/smalti/server/page",
    emptyOutDir: true,
    target: "es2022",
    // The server's security policy allows its own files only, nothing written into the page.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    host: "127.0.0.1",
    // `npm run dev` beside `smalti annotate --port 8000`. The server answers its own page only, and by its own name.
    proxy: {
      "/api": {
        target: "http://127.0.0.1:8000",
        changeOrigin: true,
        headers: { origin: "http://127.0.0.1:8000" },
      },
    },
  },
  // On a busy machine computations take many times their time.
  test: { include: ["src/**/*.test.ts"], testTimeout: 60_000 },
});
