#!/usr/bin/env node
/** An MCP server on standard input and output. Its settings come from the environment: see README.md. */
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js'
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js'
import { readSettings, SettingsError } from './settings.ts'
import { addListPayments } from './tools/list-payments.ts'
import { addPayCheckout } from './tools/pay-checkout.ts'
import { addReadCheckout } from './tools/read-checkout.ts'
import { addReadDocs } from './tools/read-docs.ts'

try {
  await start()
} catch (error) {
  if (!(error instanceof SettingsError)) throw error
  // Standard output belongs to the protocol.
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 2
}

async function start(): Promise<void> {
  const settings = readSettings(process.env)
  const server = new McpServer({ name: 'farthing', version: '0.1.0' })
  addReadCheckout(server, settings)
  addReadDocs(server, settings)
  if (settings.wallet) addPayCheckout(server, settings, settings.wallet, () => new Date())
  if (settings.apiKey !== null) addListPayments(server, settings, settings.apiKey)
  await server.connect(new StdioServerTransport())
}
