import { describeVersion } from '../../version.ts'
import { html } from '../page/html.ts'
import { style } from './assets.ts'
import { renderSearchForm } from './pages.ts'

/** The page at /: what answers at the server's address, and where to go from there. */
export function renderLanding(isReady: boolean): string {
  return html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="A self-hosted crypto checkout.">
<title>Farthing</title>
<link rel="icon" href="data:,">
<style>${{ html: style }}</style>
</head>
<body class="landing">
<main>
<h1>Farthing</h1>
<p>This server runs a crypto checkout: stores get paid in USDC, straight into their own wallets. People pay on a web
page, programs over HTTP 402.</p>
<p class="state"><span class="${isReady ? 'up' : 'down'}">${isReady ? 'Ready' : 'Not ready'}</span> ${
    isReady ? 'It answers requests.' : 'It cannot reach its database or is about to stop.'
  }</p>
<h2>Are you here to pay?</h2>
<p>Open the complete link that the store gave you. It leads to a page with the store’s name and the amount. If that page
does not open, ask the store for a new link.</p>
<h2>Are you building a store or an agent?</h2>
${renderSearchForm('', 'search')}
<ul>
<li><a href="/docs">Documentation</a></li>
<li><a href="/docs/api">API reference</a>, also as <a href="/openapi.json">openapi.json</a></li>
<li><a href="/docs/x402">Paying from a program</a>, and <a href="/llms.txt">llms.txt</a> for language models</li>
<li><a href="/docs/errors">Errors</a> and what to do about them</li>
<li>Health: <a href="/livez">livez</a> and <a href="/readyz">readyz</a></li>
</ul>
<p class="version">${describeVersion()}</p>
</main>
</body>
</html>
`.html
}
