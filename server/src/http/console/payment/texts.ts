import type { Texts } from '../languages/pick.ts'

type StepTexts = { readonly title: string; readonly text: string }

type PaymentTexts = {
  readonly happened: string
  readonly moneyTitle: string
  readonly facts: string
  readonly raw: string
  readonly price: string
  readonly rate: string
  readonly received: string
  readonly nothing: string
  readonly payer: string
  readonly paidTo: string
  readonly checkout: string
  readonly payment: string
  readonly transaction: string
  readonly order: string
  readonly description: string
  readonly metadata: string
  readonly note: string
  readonly openPage: string
  readonly decide: string
  readonly cancel: string
  readonly later: string
  readonly by: string
  readonly partBack: string
  readonly next: Readonly<Record<NextId, StepTexts>>
  readonly steps: Readonly<Record<StepId, StepTexts>>
}

type NextId =
  | 'open'
  | 'settling'
  | 'paid'
  | 'final'
  | 'refunded'
  | 'partlyRefunded'
  | 'over'
  | 'canceled'
  | 'decide'
  | 'dust'
  | 'dismissed'
  | 'reversed'

export type StepId =
  | 'created'
  | 'signed'
  | 'refused'
  | 'sent'
  | 'sentTogether'
  | 'block'
  | 'safe'
  | 'final'
  | 'awaitFinal'
  | 'completed'
  | 'reopened'
  | 'expired'
  | 'canceled'
  | 'late'
  | 'underpaid'
  | 'overpaid'
  | 'reorged'
  | 'reversed'
  | 'accepted'
  | 'dismissed'
  | 'noted'
  | 'refundAsked'
  | 'refunded'
  | 'delivered'
  | 'undelivered'
  | 'delivering'

/** One payment: what happened to it, and what is left to do. */
export const paymentTexts: Texts<PaymentTexts> = {
  en: {
    happened: 'What happened',
    moneyTitle: 'Money',
    facts: 'Facts',
    raw: 'Raw JSON',
    price: 'Price',
    rate: 'Rate',
    received: 'Received',
    nothing: 'Nothing',
    payer: 'Payer',
    paidTo: 'Paid to',
    checkout: 'Checkout',
    payment: 'Payment',
    transaction: 'Transaction',
    order: 'Order',
    description: 'Description',
    metadata: 'Metadata',
    note: 'Note',
    openPage: 'Payment page',
    decide: 'Decide in the inbox',
    cancel: 'Cancel this checkout',
    later: '{time} later',
    by: 'By {name}',
    partBack: '{amount} of it went back.',
    next: {
      open: { title: 'Waiting for the buyer.', text: 'Send them the payment page, or cancel.' },
      settling: {
        title: 'Nothing to do.',
        text: 'The payment is signed and on its way. The outcome appears here.',
      },
      paid: { title: 'Paid.', text: 'The money is in your wallet. It becomes final by itself.' },
      final: {
        title: 'Nothing left to do.',
        text: 'The money is in your wallet and can no longer be reversed.',
      },
      refunded: { title: 'Refunded.', text: 'All of this payment went back: {amount}.' },
      partlyRefunded: {
        title: 'Partly refunded.',
        text: '{amount} of it went back. The rest is in your wallet and can no longer be reversed.',
      },
      over: { title: 'Nothing to do.', text: 'Nobody paid before it expired.' },
      canceled: { title: 'Nothing to do.', text: 'It was canceled and cannot be paid.' },
      decide: { title: 'This needs you.', text: 'Money came that does not complete the checkout by itself.' },
      dust: {
        title: 'Nothing to do.',
        text: 'It is less than a cent and for no checkout, so the inbox does not list it.',
      },
      dismissed: { title: 'Nothing left to do.', text: 'Your store has dealt with this money.' },
      reversed: {
        title: 'Nothing to do.',
        text: 'The chain took this payment back, so its money is not in your wallet.',
      },
    },
    steps: {
      created: { title: 'Created', text: 'For the order {order}' },
      signed: { title: 'Signed', text: 'One signature by {payer} for exactly {amount}' },
      refused: { title: 'Payment did not happen', text: 'The signature can no longer move money ({reason})' },
      sent: { title: 'Sent', text: 'In the transaction {transaction}' },
      sentTogether: { title: 'Sent', text: 'With {count} other payments in the transaction {transaction}' },
      block: { title: 'In a block', text: '{amount} in block {block}' },
      safe: { title: 'Safe', text: 'The block is very unlikely to be replaced' },
      final: { title: 'Final', text: 'The payment can no longer be reversed' },
      awaitFinal: { title: 'Final', text: 'Not yet. This takes up to half an hour and needs nobody' },
      completed: { title: 'Counted as paid', text: 'From here on the order is paid' },
      reopened: { title: 'Open again', text: 'The buyer can pay again' },
      expired: { title: 'Expired', text: 'It can no longer be paid' },
      canceled: { title: 'Canceled', text: 'It can no longer be paid' },
      late: { title: 'Late money', text: 'It came after the checkout had ended' },
      underpaid: { title: 'Too little', text: 'It is less than the price' },
      overpaid: { title: 'Too much', text: 'It is more than the checkout still needed' },
      reorged: {
        title: 'Taken out of its block',
        text: 'The chain replaced the block. We send the payment again',
      },
      reversed: { title: 'Reversed', text: 'The chain took the payment back for good' },
      accepted: { title: 'Accepted', text: 'Your store took the money for this checkout' },
      dismissed: { title: 'Dismissed', text: 'Your store needs to do nothing more about it' },
      noted: { title: 'Note changed', text: '{note}' },
      refundAsked: { title: 'Refund requested', text: '{refund}' },
      refunded: { title: 'Refunded', text: '{refund} to {address} in the transaction {transaction}' },
      delivered: { title: 'Webhook delivered', text: '{type} to {host}, answered {status} in {time}' },
      undelivered: { title: 'Webhook given up', text: '{type} to {host} after {count} tries' },
      delivering: { title: 'Webhook waiting', text: '{type} to {host}, {count} tries so far' },
    },
  },
  es: {
    happened: 'Qué pasó',
    moneyTitle: 'Dinero',
    facts: 'Datos',
    raw: 'JSON original',
    price: 'Precio',
    rate: 'Cambio',
    received: 'Recibido',
    nothing: 'Nada',
    payer: 'Pagador',
    paidTo: 'Pagado a',
    checkout: 'Cobro',
    payment: 'Pago',
    transaction: 'Transacción',
    order: 'Pedido',
    description: 'Concepto',
    metadata: 'Metadatos',
    note: 'Nota',
    openPage: 'Página de pago',
    decide: 'Decidir en la bandeja',
    cancel: 'Cancelar este cobro',
    later: '{time} después',
    by: 'Por {name}',
    partBack: '{amount} se devolvieron.',
    next: {
      open: { title: 'Esperando al comprador.', text: 'Envíele la página de pago, o cancele.' },
      settling: {
        title: 'Nada que hacer.',
        text: 'El pago está firmado y en camino. El resultado aparecerá aquí.',
      },
      paid: { title: 'Pagado.', text: 'El dinero está en su cartera. Será definitivo sin que haga nada.' },
      final: {
        title: 'Nada más que hacer.',
        text: 'El dinero está en su cartera y ya no puede revertirse.',
      },
      refunded: { title: 'Reembolsado.', text: 'Todo este pago se devolvió: {amount}.' },
      partlyRefunded: {
        title: 'Reembolsado en parte.',
        text: '{amount} se devolvieron. El resto está en su cartera y ya no puede revertirse.',
      },
      over: { title: 'Nada que hacer.', text: 'Nadie pagó antes de que caducara.' },
      canceled: { title: 'Nada que hacer.', text: 'Se canceló y no puede pagarse.' },
      decide: { title: 'Necesita su decisión.', text: 'Llegó dinero que no completa el cobro por sí solo.' },
      dust: {
        title: 'Nada que hacer.',
        text: 'Es menos de un céntimo y sin cobro, así que la bandeja no lo muestra.',
      },
      dismissed: { title: 'Nada más que hacer.', text: 'Su tienda ya se ocupó de este dinero.' },
      reversed: {
        title: 'Nada que hacer.',
        text: 'La cadena deshizo este pago, así que su dinero no está en su cartera.',
      },
    },
    steps: {
      created: { title: 'Creado', text: 'Para el pedido {order}' },
      signed: { title: 'Firmado', text: 'Una firma de {payer} por {amount} exactos' },
      refused: { title: 'El pago no se hizo', text: 'La firma ya no puede mover dinero ({reason})' },
      sent: { title: 'Enviado', text: 'En la transacción {transaction}' },
      sentTogether: { title: 'Enviado', text: 'Con otros {count} pagos en la transacción {transaction}' },
      block: { title: 'En un bloque', text: '{amount} en el bloque {block}' },
      safe: { title: 'Seguro', text: 'Es muy improbable que el bloque se reemplace' },
      final: { title: 'Definitivo', text: 'El pago ya no puede revertirse' },
      awaitFinal: { title: 'Definitivo', text: 'Aún no. Tarda hasta media hora y no requiere a nadie' },
      completed: { title: 'Cuenta como pagado', text: 'Desde aquí el pedido está pagado' },
      reopened: { title: 'Abierto de nuevo', text: 'El comprador puede volver a pagar' },
      expired: { title: 'Caducado', text: 'Ya no puede pagarse' },
      canceled: { title: 'Cancelado', text: 'Ya no puede pagarse' },
      late: { title: 'Llegó tarde', text: 'Fue después de que el cobro terminara' },
      underpaid: { title: 'De menos', text: 'Es menos que el precio' },
      overpaid: { title: 'De más', text: 'Es más de lo que el cobro aún necesitaba' },
      reorged: {
        title: 'Fuera de su bloque',
        text: 'La cadena reemplazó el bloque. Enviamos el pago otra vez',
      },
      reversed: { title: 'Revertido', text: 'La cadena deshizo el pago para siempre' },
      accepted: { title: 'Aceptado', text: 'Su tienda tomó el dinero para este cobro' },
      dismissed: { title: 'Descartado', text: 'Su tienda no tiene que hacer nada más' },
      noted: { title: 'Nota cambiada', text: '{note}' },
      refundAsked: { title: 'Reembolso solicitado', text: '{refund}' },
      refunded: { title: 'Reembolsado', text: '{refund} a {address} en la transacción {transaction}' },
      delivered: { title: 'Webhook entregado', text: '{type} a {host}, respondió {status} en {time}' },
      undelivered: { title: 'Webhook abandonado', text: '{type} a {host} tras {count} intentos' },
      delivering: { title: 'Webhook en espera', text: '{type} a {host}, {count} intentos hasta ahora' },
    },
  },
}
