import type { CheckoutStatus, Disposition } from '@farthing/sdk'
import type { Texts } from '../languages/pick.ts'

/** What an answer to a decision says, by the name in the address. */
export const results = [
  'accepted',
  'dismissed',
  'doing',
  'already_paid',
  'payment_in_progress',
  'payment_not_open',
  'payment_refunded',
  'wallet_unproven',
  'not_found',
  'rate_limited',
  'note',
] as const
export type Result = (typeof results)[number]

type InboxTexts = {
  readonly title: string
  readonly about: string
  readonly empty: string
  readonly emptyAbout: string
  readonly more: string
  readonly dispositions: Readonly<Record<Exclude<Disposition, 'exact'>, string>>
  readonly statuses: Readonly<Record<CheckoutStatus, string>>
  readonly why: {
    readonly unmatched: string
    readonly expired: string
    readonly canceled: string
    readonly late: string
    readonly underpaid: string
    readonly overpaid: string
    readonly twice: string
  }
  readonly whatFor: string
  readonly noneLikely: string
  readonly found: string
  readonly notFound: string
  readonly reasons: {
    readonly same: string
    readonly named: string
    readonly opened: string
    readonly wanted: string
  }
  readonly another: string
  readonly find: string
  readonly accept: string
  readonly acceptFor: string
  readonly acceptAbout: string
  readonly paidAlready: string
  readonly unproven: string
  readonly mayNot: string
  readonly dismissInstead: string
  readonly refundInstead: string
  readonly dismissAbout: string
  readonly note: string
  readonly dismiss: string
  readonly payer: string
  readonly network: string
  readonly finalSince: string
  readonly notFinal: string
  readonly transaction: string
  readonly whole: string
  readonly recent: string
  readonly nobodyYet: string
  readonly accepted: string
  readonly dismissed: string
  readonly by: string
  readonly results: Readonly<Record<Result, string>>
}

/** Money that completed no checkout. */
export const inboxTexts: Texts<InboxTexts> = {
  en: {
    title: 'Inbox',
    about:
      'Money that reached your wallet and completed no checkout. You have it already. Say which order it pays, or put it aside.',
    empty: 'Nothing to decide',
    emptyAbout:
      'When somebody pays too little, too much, too late or without a checkout, you find it here, with the reason.',
    more: 'These are the newest. Older ones appear once these are decided.',
    dispositions: {
      unmatched: 'Unmatched',
      late: 'Late',
      underpaid: 'Underpaid',
      overpaid: 'Overpaid',
    },
    statuses: {
      OPEN: 'open',
      PROCESSING: 'being paid',
      COMPLETED: 'paid',
      EXPIRED: 'expired',
      CANCELED: 'canceled',
    },
    why: {
      unmatched: 'It came without a checkout',
      expired: '{order} had expired {time} before',
      canceled: '{order} was canceled',
      late: '{order} took no payments any more',
      underpaid: '{order} asked for {due}; {difference} is missing',
      overpaid: '{order} asked for {due}; this is {difference} too much',
      twice: '{order} was paid already',
    },
    whatFor: 'What was it for? Likely checkouts first',
    noneLikely:
      'No unpaid checkout of the days before asked for this amount. If you know the order, look for it.',
    found: 'Checkouts found for {text}',
    notFound: 'There is no unpaid checkout with the order or id {text}.',
    reasons: {
      same: 'It asked for the same amount.',
      named: 'The buyer gave this transaction on its payment page.',
      opened: 'Made {time} before the money came.',
      wanted: 'It asked for {due}.',
    },
    another: 'Another checkout: its order or id',
    find: 'Find',
    accept: 'Accept for the chosen one',
    acceptFor: 'Accept for {order}',
    acceptAbout: 'The order then counts as paid, with {amount}.',
    paidAlready:
      '{order} is paid already, so this cannot pay it too. Refund it or agree on something with the buyer, then put it aside.',
    unproven:
      'Another store has registered the same wallet, so nobody can say whose money this is. Prove that the wallet is yours, then decide.',
    mayNot: 'Owners and managers decide about it.',
    dismissInstead: 'Put it aside instead',
    refundInstead: 'Refund it instead',
    dismissAbout: 'It stays in the list of payments and pays no order.',
    note: 'Note for your team (optional)',
    dismiss: 'Put it aside',
    payer: 'From',
    network: 'Network',
    finalSince: '{network}, final since {time}',
    notFinal: '{network}, not final yet',
    transaction: 'Transaction',
    whole: 'All about this payment',
    recent: 'Recently decided',
    nobodyYet: 'Nothing lately.',
    accepted: '{amount} accepted for {order}',
    dismissed: '{amount} put aside',
    by: 'by {name}',
    results: {
      accepted: 'Accepted. The order is paid.',
      dismissed: 'Put aside.',
      doing: 'Your decision is recorded and is being carried out. This page shows it in a moment.',
      already_paid: 'That checkout is paid already. Choose another one, or put the payment aside.',
      payment_in_progress:
        'Another payment for that checkout is on its way. Wait until it has arrived or failed, then decide.',
      payment_not_open: 'This payment has been decided about already, or the network took it back.',
      payment_refunded: 'This payment is being refunded, so it cannot pay an order. Cancel the refund first.',
      wallet_unproven:
        'Another store has registered the same wallet. Prove that the wallet is yours, then decide.',
      not_found: 'There is no such checkout or payment in this store.',
      rate_limited: 'Many decisions of this store are waiting to be carried out. Try again in a moment.',
      note: 'The note is too long, or has characters that cannot be kept. Write up to 1,000.',
    },
  },
  es: {
    title: 'Bandeja',
    about:
      'Dinero que llegó a su cartera y no completó ningún cobro. Ya es suyo. Diga qué pedido paga, o apártelo.',
    empty: 'No hay nada por decidir',
    emptyAbout:
      'Cuando alguien pague de menos, de más, tarde o sin un cobro, lo encontrará aquí, con el motivo.',
    more: 'Estos son los más recientes. Los anteriores aparecen cuando estos estén decididos.',
    dispositions: {
      unmatched: 'Sin cobro',
      late: 'Tarde',
      underpaid: 'De menos',
      overpaid: 'De más',
    },
    statuses: {
      OPEN: 'abierto',
      PROCESSING: 'pagándose',
      COMPLETED: 'pagado',
      EXPIRED: 'caducado',
      CANCELED: 'cancelado',
    },
    why: {
      unmatched: 'Llegó sin un cobro',
      expired: '{order} había caducado {time} antes',
      canceled: '{order} estaba cancelado',
      late: '{order} ya no admitía pagos',
      underpaid: '{order} pedía {due}; faltan {difference}',
      overpaid: '{order} pedía {due}; sobran {difference}',
      twice: '{order} ya estaba pagado',
    },
    whatFor: '¿Para qué era? Primero los cobros probables',
    noneLikely:
      'Ningún cobro sin pagar de los días anteriores pedía esta cantidad. Si conoce el pedido, búsquelo.',
    found: 'Cobros encontrados para {text}',
    notFound: 'No hay ningún cobro sin pagar con el pedido o id {text}.',
    reasons: {
      same: 'Pedía la misma cantidad.',
      named: 'El comprador indicó esta transacción en su página de pago.',
      opened: 'Creado {time} antes de que llegara el dinero.',
      wanted: 'Pedía {due}.',
    },
    another: 'Otro cobro: su pedido o id',
    find: 'Buscar',
    accept: 'Aceptar para el elegido',
    acceptFor: 'Aceptar para {order}',
    acceptAbout: 'El pedido contará entonces como pagado, con {amount}.',
    paidAlready:
      '{order} ya está pagado, así que esto no puede pagarlo también. Reembólselo o acuerde algo con el comprador, y después apártelo.',
    unproven:
      'Otra tienda ha registrado la misma cartera, así que nadie puede decir de quién es este dinero. Demuestre que la cartera es suya y decida después.',
    mayNot: 'Deciden los propietarios y los encargados.',
    dismissInstead: 'Apartarlo',
    refundInstead: 'Reembolsarlo',
    dismissAbout: 'Sigue en la lista de pagos y no paga ningún pedido.',
    note: 'Nota para su equipo (opcional)',
    dismiss: 'Apartarlo',
    payer: 'De',
    network: 'Red',
    finalSince: '{network}, definitivo desde {time}',
    notFinal: '{network}, aún no definitivo',
    transaction: 'Transacción',
    whole: 'Todo sobre este pago',
    recent: 'Decidido hace poco',
    nobodyYet: 'Nada últimamente.',
    accepted: '{amount} aceptados para {order}',
    dismissed: '{amount} apartados',
    by: 'por {name}',
    results: {
      accepted: 'Aceptado. El pedido está pagado.',
      dismissed: 'Apartado.',
      doing: 'Su decisión está anotada y se está aplicando. Esta página la mostrará en un momento.',
      already_paid: 'Ese cobro ya está pagado. Elija otro o aparte el pago.',
      payment_in_progress:
        'Otro pago para ese cobro está en camino. Espere a que llegue o falle y decida después.',
      payment_not_open: 'Ya se decidió sobre este pago, o la red lo retiró.',
      payment_refunded:
        'Este pago se está reembolsando, así que no puede pagar un pedido. Cancele antes el reembolso.',
      wallet_unproven:
        'Otra tienda ha registrado la misma cartera. Demuestre que la cartera es suya y decida después.',
      not_found: 'No hay tal cobro ni tal pago en esta tienda.',
      rate_limited: 'Muchas decisiones de esta tienda esperan a aplicarse. Inténtelo en un momento.',
      note: 'La nota es demasiado larga o tiene caracteres que no se pueden guardar. Escriba hasta 1.000.',
    },
  },
}
