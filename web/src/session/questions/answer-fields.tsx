// Answer fields: the inputs and buttons for each kind of question.
import type { ComponentChildren } from 'preact';
import { useRef, useState } from 'preact/hooks';
import type { Protocol } from '@switchboard/client';
import { text } from '../../text';
import type { AnswerDraft } from './answer-draft';

const strings = text.questions;

export interface AnswerFieldsProps {
  draft: AnswerDraft;
  send: (answer: Protocol.SaidOnce, verdict: 'yes' | 'no') => void;
}

/** Allow or deny, with the agent's own options if it has some. */
export function PermissionFields({ draft, send }: AnswerFieldsProps) {
  const { options } = draft.question;
  const isNo = (option: Protocol.Offer) => option.kind?.startsWith('reject') ?? false;
  const answerOf = (option: Protocol.Offer) => (option.kind && options.filter(({ kind }) => kind === option.kind).length === 1 ? option.kind : option.id);
  if (options.length === 0) {
    return (
      <AnswerButtons draft={draft}>
        <AnswerButton draft={draft} answer="allow_once" isYes position={1} onPress={() => send({ ok: true }, 'yes')}>{draft.question.confirmLabel ?? strings.allow}</AnswerButton>
        <AnswerButton draft={draft} answer="reject_once" position={2} onPress={() => send({ ok: false }, 'no')}>{draft.question.cancelLabel ?? strings.deny}</AnswerButton>
      </AnswerButtons>
    );
  }
  return (
    <AnswerButtons draft={draft}>
      {options.map((option, position) => (
        <AnswerButton key={option.id} draft={draft} answer={answerOf(option)} isYes={!isNo(option)} isMain={position === options.findIndex((one) => !isNo(one))} position={position + 1} detail={option.detail} onPress={() => send({ optionId: option.id }, isNo(option) ? 'no' : 'yes')}>
          {option.label}
        </AnswerButton>
      ))}
      {!options.some(isNo) && <AnswerButton draft={draft} answer="reject_once" position={options.length + 1} onPress={() => send({ ok: false }, 'no')}>{strings.deny}</AnswerButton>}
      {options.map(({ id, label, detail }) => detail !== undefined && <p class="soft small question-covers" key={id} data-part="covers">{strings.covers(label, detail)}</p>)}
    </AnswerButtons>
  );
}

/** Yes or no. */
export function ConfirmFields({ draft, send }: AnswerFieldsProps) {
  const { confirmLabel, cancelLabel } = draft.question;
  return (
    <AnswerButtons draft={draft}>
      <AnswerButton draft={draft} answer="ok" isYes position={1} onPress={() => send({ ok: true }, 'yes')}>{confirmLabel ?? strings.ok}</AnswerButton>
      <AnswerButton draft={draft} answer="cancel" position={2} onPress={() => send({ ok: false }, 'no')}>{cancelLabel ?? strings.no}</AnswerButton>
    </AnswerButtons>
  );
}

/** Free text. */
export function PromptFields({ draft, send }: AnswerFieldsProps) {
  const { question } = draft;
  const [secret, setSecret] = useState('');
  const value = question.secret ? secret : draft.value.value;
  const change = (typed: string) => (question.secret ? setSecret(typed) : (draft.value.value = typed));
  const submit = () => {
    send({ value }, 'yes');
    // A secret does not stay on the page, whether or not it was accepted.
    setSecret('');
  };
  const label = question.secret ? strings.secret : strings.answer;
  return (
    <>
      <label class="field">
        <span>{label}</span>
        {question.secret && <span class="hint">{strings.secretMeans}</span>}
        {question.multiline && !question.secret ? (
          <textarea class="input" data-part="answer-text" rows={4} value={value} onInput={(event) => change(event.currentTarget.value)} onKeyDown={(event) => {
            if (event.key === 'Enter' && (event.ctrlKey || event.metaKey)) event.currentTarget.form?.requestSubmit();
          }} />
        ) : (
          <input class="input" data-part="answer-text" {...(question.secret ? { type: 'password', autoComplete: 'new-password' } : { type: 'text', autoComplete: 'off' })} value={value} onInput={(event) => change(event.currentTarget.value)} />
        )}
      </label>
      <SubmitButtons draft={draft} submit={submit} send={send} />
    </>
  );
}

/** One or several options. */
export function ChoiceFields({ draft, send }: AnswerFieldsProps) {
  const { question } = draft;
  const chosen = draft.ids.value;
  const choose = (id: string, isOn: boolean) => {
    draft.error.value = '';
    draft.ids.value = question.multi ? (isOn ? [...chosen, id] : chosen.filter((one) => one !== id)) : [id];
  };
  const submit = () => {
    if (chosen.length === 0 && !question.multi) return void (draft.error.value = strings.chooseFirst);
    send({ ids: question.options.map(({ id }) => id).filter((id) => chosen.includes(id)) }, 'yes');
  };
  return (
    <>
      <fieldset class="question-options">
        <legend class="small soft">{question.multi ? strings.choicesMany : strings.choices}</legend>
        {question.options.map((option, position) => (
          <label class="question-option" key={option.id}>
            <input type={question.multi ? 'checkbox' : 'radio'} name={question.questionId} value={option.id} data-key={position < 9 ? position + 1 : undefined} checked={chosen.includes(option.id)} onChange={(event) => choose(option.id, event.currentTarget.checked)} />
            <span>
              {option.label}
              {option.detail !== undefined && <span class="soft small question-detail">{option.detail}</span>}
            </span>
            {position < 9 && <kbd>{position + 1}</kbd>}
          </label>
        ))}
      </fieldset>
      <SubmitButtons draft={draft} submit={submit} send={send} />
    </>
  );
}

function SubmitButtons({ draft, submit, send }: { draft: AnswerDraft; submit: () => void; send: AnswerFieldsProps['send'] }) {
  const { confirmLabel, cancelLabel } = draft.question;
  return (
    <AnswerButtons draft={draft}>
      <AnswerButton draft={draft} answer="submit" isYes isSubmit onPress={submit}>{confirmLabel ?? strings.submit}</AnswerButton>
      <AnswerButton draft={draft} answer="cancel" onPress={() => send({ ok: false }, 'no')}>{cancelLabel ?? strings.decline}</AnswerButton>
    </AnswerButtons>
  );
}

/** The buttons, below the reason and the option to remember. */
function AnswerButtons({ draft, children }: { draft: AnswerDraft; children: ComponentChildren }) {
  const { allowReason, allowRemember, options } = draft.question;
  const hasAlways = options.some(({ kind }) => kind?.endsWith('always'));
  return (
    <>
      {allowReason && <ReasonField draft={draft} />}
      {allowRemember && !hasAlways && (
        <label class="check">
          <input type="checkbox" checked={draft.remember.value} onChange={(event) => (draft.remember.value = event.currentTarget.checked)} />
          {strings.remember}
        </label>
      )}
      <div class="question-buttons">{children}</div>
    </>
  );
}

function ReasonField({ draft }: { draft: AnswerDraft }) {
  const input = useRef<HTMLInputElement>(null);
  if (!draft.wantsReason.value) {
    return <button type="button" class="reason-opener small" onClick={() => {
      draft.wantsReason.value = true;
      setTimeout(() => input.current?.focus());
    }}>{strings.giveReason}</button>;
  }
  return (
    <label class="field">
      <span class="small">{strings.reason}</span>
      <input ref={input} class="input" type="text" maxLength={2000} data-part="reason" value={draft.reason.value} onInput={(event) => (draft.reason.value = event.currentTarget.value)} />
    </label>
  );
}

/** A button that answers. On a critical question, allowing requires a second press. */
function AnswerButton({ draft, answer, isYes = false, isMain = isYes, isSubmit = false, position, detail, onPress, children }: { draft: AnswerDraft; answer: string; isYes?: boolean; isMain?: boolean; isSubmit?: boolean; position?: number; detail?: string | undefined; onPress: () => void; children: ComponentChildren }) {
  const isArmed = draft.armed.value === answer;
  const press = (event: MouseEvent) => {
    event.preventDefault();
    // A double click counts once.
    if (draft.isBusy.value || event.detail > 1 || (isYes && !draft.confirm(answer))) return;
    onPress();
  };
  return (
    <button type={isSubmit ? 'submit' : 'button'} class={`button ${isMain ? '' : 'quiet'} ${isArmed ? 'armed' : ''}`} data-answer={answer} data-key={position !== undefined && position < 10 ? position : undefined} data-yes={isYes} title={detail} aria-disabled={draft.isBusy.value} onClick={press}>
      <span>{isArmed && typeof children === 'string' ? strings.again(children) : children}</span>
      {position !== undefined && position < 10 && <kbd aria-hidden="true">{position}</kbd>}
    </button>
  );
}
